package kubernetescluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/deliver/apply"
)

var (
	definitions   = v1alpha1.GroupVersion.WithResource("applicationdefinitions")
	installations = v1alpha1.GroupVersion.WithResource("applicationinstallations")
)

// cleanupTimeout bounds a clean-up: a cluster that hangs delays its own deletion only.
const cleanupTimeout = 30 * time.Second

// direct returns a client that bypasses the registry, which no longer has the cluster, and what is to be
// called when it is not needed any more.
func (r *Reconciler) direct(ctx context.Context, kc *v1alpha1.KubernetesCluster) (metadata.Interface, func(), error) {
	found, err := r.kubeconfig(ctx, &scope{kc: kc, key: client.ObjectKeyFromObject(kc)})
	if err != nil {
		return nil, nil, err
	}
	if found.config == nil {
		return r.Clusters.Local().Metadata(), func() {}, nil
	}
	return r.Clusters.Unengaged(found.config)
}

// cleanup removes the copies of definitions, and from a seed those of source credentials, from a cluster that is
// removed and, with abandon, our finalizer from the installations that are left behind. It does what it can, and
// returns the first error. CRDs stay: their deletion would also delete what others keep in them.
func (r *Reconciler) cleanup(ctx context.Context, c metadata.Interface, kc *v1alpha1.KubernetesCluster, abandon bool) error {
	ctx, cancel := context.WithTimeout(ctx, cleanupTimeout)
	defer cancel()
	err := r.removeCopies(ctx, c)
	if kc.IsSeed() {
		err = cmp.Or(err, r.removeCredentials(ctx, c))
	}
	if !abandon {
		return err
	}
	if failed := removeFinalizers(ctx, c); err == nil {
		err = failed
	}
	return err
}

func (r *Reconciler) removeCopies(ctx context.Context, c metadata.Interface) error {
	copies := c.Resource(definitions)
	return each(ctx, copies, func(o *metav1.PartialObjectMetadata) error {
		if o.Annotations[v1alpha1.CopyOfAnnotation] != r.HubID {
			return nil
		}
		return copies.Delete(ctx, o.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &o.UID}})
	})
}

// removeCredentials deletes the copies of source credentials of this hub. User clusters have none.
func (r *Reconciler) removeCredentials(ctx context.Context, c metadata.Interface) error {
	copies := c.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(r.SystemNamespace)
	return eachOf(ctx, copies, v1alpha1.CopyOfLabel+"="+r.HubID, func(o *metav1.PartialObjectMetadata) error {
		original := apply.Owner{HubID: r.HubID, Kind: string(content.Secret), Namespace: r.SystemNamespace, Name: o.Name}
		if owner, ok := apply.OwnerOf(o); !ok || owner != original {
			return nil
		}
		return copies.Delete(ctx, o.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &o.UID}})
	})
}

func removeFinalizers(ctx context.Context, c metadata.Interface) error {
	resource := c.Resource(installations)
	return each(ctx, resource, func(o *metav1.PartialObjectMetadata) error {
		kept := slices.DeleteFunc(slices.Clone(o.Finalizers), func(f string) bool { return f == v1alpha1.Finalizer })
		if len(kept) == len(o.Finalizers) {
			return nil
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": kept, "resourceVersion": o.ResourceVersion}})
		if err != nil {
			return err
		}
		_, err = resource.Namespace(o.Namespace).Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: v1alpha1.FieldManager})
		return err
	})
}

// each calls f for every object of a kind, and returns the first error. A kind or an object that
// does not exist, or no longer exists, is not an error.
func each(ctx context.Context, c metadata.ResourceInterface, f func(*metav1.PartialObjectMetadata) error) error {
	return eachOf(ctx, c, "", f)
}

// eachOf is like each, for those that a label selector matches.
func eachOf(ctx context.Context, c metadata.ResourceInterface, selector string, f func(*metav1.PartialObjectMetadata) error) error {
	list, err := c.List(ctx, metav1.ListOptions{LabelSelector: selector})
	if apierrors.IsNotFound(err) {
		return nil // not even the kind
	}
	if err != nil {
		return fmt.Errorf("list what is left: %w", err)
	}
	var first error
	for i := range list.Items {
		o := &list.Items[i]
		if err := f(o); err != nil && !apierrors.IsNotFound(err) && first == nil {
			first = fmt.Errorf("clean up %s %s: %w", o.Kind, o.Name, err)
		}
	}
	return first
}
