package applicationinstallation

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

var namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")

// isMarked reports whether a target namespace is to have labels or annotations, which others may have removed.
func isMarked(wanted v1alpha1.TargetNamespace) bool {
	return len(wanted.Labels)+len(wanted.Annotations) > 0
}

// ensureNamespace creates the target namespace if the installation asks for that, and sets its
// labels and annotations. Each installation is its own field manager, so that two that
// share a namespace do not remove each other's labels. The namespace is never deleted: others may
// use it by now.
func (d *driver) ensureNamespace(ctx context.Context, p plan) error {
	wanted := p.namespace
	marked := isMarked(wanted)
	if wanted.Name == p.inst.Namespace && !wanted.Create && !marked {
		return nil // the installation is in it
	}
	if !wanted.Create {
		// No user gains by this, so that an account needs no right to it.
		_, err := d.cluster.Metadata().Resource(namespaces).Get(ctx, wanted.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return reconcile.Failed(v1alpha1.NamespaceNotFoundReason,
				"namespace %s does not exist: create it, or set spec.namespace.create", wanted.Name)
		}
		if err != nil || !marked {
			return err
		}
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1",
		"kind":       "Namespace",
		"metadata":   map[string]any{"name": wanted.Name, "labels": wanted.Labels, "annotations": wanted.Annotations},
	})
	if err != nil {
		return err
	}
	manager := v1alpha1.FieldManager + ":" + p.owner.Hash()
	_, err = p.target.Metadata().Resource(namespaces).Patch(ctx, wanted.Name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: manager, Force: ptr.To(true)})
	if err != nil {
		return reconcile.Failed(v1alpha1.NamespaceNotFoundReason, "namespace %s: %w", wanted.Name, err)
	}
	return nil
}
