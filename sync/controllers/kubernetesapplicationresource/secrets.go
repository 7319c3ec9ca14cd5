package kubernetesapplicationresource

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// secret is a Secret to copy.
type secret struct {
	name    string
	content *content.Content
}

// readSecrets reads the Secrets that the spec names from the namespace of the resource, and from no
// other. Those that KubernetesClusters are reached with, and credentials of sources, may not
// leave the hub. Admission has refused the former already, but a Secret may have become one
// since; it cannot refuse the latter, because it reads no Secrets. Of a Secret that the spec named
// once, there may still be a copy.
func (r *Reconciler) readSecrets(ctx context.Context, s *scope) error {
	dropped := s.dropped()
	if len(s.kar.Spec.Secrets) == 0 && len(dropped) == 0 {
		return nil
	}
	kubeconfigs, err := r.kubeconfigs(ctx, s.kar.Namespace)
	if err != nil {
		return err
	}
	for _, ref := range s.kar.Spec.Secrets {
		found, err := r.readSecret(ctx, s, ref.Name)
		switch {
		case err != nil:
			return err
		case kubeconfigs[ref.Name], isCredential(found):
			s.barred = append(s.barred, ref.Name)
		case found == nil:
			s.missing = append(s.missing, ref.Name)
		default:
			s.secrets = append(s.secrets, secret{ref.Name, found})
		}
	}
	for _, name := range dropped {
		found, err := r.readSecret(ctx, s, name)
		if err != nil {
			return err
		}
		if kubeconfigs[name] || isCredential(found) {
			s.disowned = append(s.disowned, name)
		}
	}
	return nil
}

// readSecret returns a Secret of the namespace of the resource; nil if it does not exist.
func (r *Reconciler) readSecret(ctx context.Context, s *scope, name string) (*content.Content, error) {
	found, err := r.Secrets.Get(ctx, content.Secret, types.NamespacedName{Namespace: s.kar.Namespace, Name: name})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, reconcile.Failed(v1alpha1.SecretNotFoundReason, "spec.secrets: %w", err)
	}
	return found, nil
}

// dropped returns the names of the Secrets that the spec no longer names, but whose copies are in the
// cluster or may be.
func (s *scope) dropped() []string {
	var names []string
	for _, id := range s.inventory() {
		name, ours := strings.CutPrefix(id.Name, s.kar.PropagatedSecretName(""))
		named := func(ref v1alpha1.ResourceSecretReference) bool { return ref.Name == name }
		if ours && isSecret(id) && !s.sameObject(id) && !slices.ContainsFunc(s.kar.Spec.Secrets, named) {
			names = append(names, name)
		}
	}
	return names
}

func isSecret(id manifest.ID) bool { return id.Group == "" && id.Kind == "Secret" }

// kubeconfigs returns the names of the Secrets that KubernetesClusters of a namespace refer to.
func (r *Reconciler) kubeconfigs(ctx context.Context, namespace string) (map[string]bool, error) {
	list := &v1alpha1.KubernetesClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	names := make(map[string]bool)
	for i := range list.Items {
		if ref := list.Items[i].Spec.KubeconfigSecretRef; ref != nil {
			names[ref.Name] = true
		}
	}
	return names, nil
}

func isCredential(c *content.Content) bool {
	if c == nil {
		return false
	}
	_, marked := c.Annotations[v1alpha1.SecretTypeAnnotation]
	return marked
}

// withheld returns an error that names the Secrets that keep the resource from being complete; nil
// if there are none.
func (s *scope) withheld() error {
	switch {
	case len(s.barred) > 0:
		return reconcile.Stalled(v1alpha1.SecretNotPropagatedReason,
			"spec.secrets: %s may not leave the hub, because a KubernetesCluster or the catalog is reached with it: name another Secret",
			strings.Join(s.barred, ", "))
	case len(s.missing) > 0:
		return reconcile.Waiting(v1alpha1.SecretNotFoundReason, 0,
			"spec.secrets: Secret %s does not exist in namespace %s: create it, or correct the name",
			strings.Join(s.missing, ", "), s.kar.Namespace)
	default:
		return nil
	}
}

// namespace returns the namespace of the object, if its kind has namespaces, and of the copies of
// Secrets.
func (s *scope) namespace() string {
	if namespace := s.kar.Spec.Template.Metadata.Namespace; namespace != "" {
		return namespace
	}
	return metav1.NamespaceDefault
}

// copyID returns the identity of the copy of a Secret.
func (s *scope) copyID(secret string) manifest.ID {
	return manifest.ID{Version: "v1", Kind: "Secret", Namespace: s.namespace(), Name: s.kar.PropagatedSecretName(secret)}
}

// copyOf returns the copy of a Secret: its data and type, and nothing else of it.
func (s *scope) copyOf(source secret) manifest.Object {
	id := s.copyID(source.name)
	data := make(map[string]any, len(source.content.Data))
	for key, value := range source.content.Data {
		data[key] = base64.StdEncoding.EncodeToString(value)
	}
	return manifest.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Secret",
		"metadata": map[string]any{
			"namespace":   id.Namespace,
			"name":        id.Name,
			"annotations": map[string]any{v1alpha1.ResourceUIDAnnotation: string(s.kar.UID)},
		},
		"type": string(source.content.Type),
		"data": data,
	}}}
}
