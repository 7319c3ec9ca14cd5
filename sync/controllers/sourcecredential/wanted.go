package sourcecredential

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/manifest"
)

// wanted is what should be copied of a Secret, and to which namespaces. Nil stands for none.
type wanted struct {
	name       string
	content    *content.Content
	namespaces []string // sorted
	hubID      string
}

// digest identifies everything that makes a difference to the copies.
func (w *wanted) digest() string {
	if w == nil {
		return "none"
	}
	sum := sha256.Sum256([]byte(fmt.Sprintf("%q %q %q %s", w.namespaces, w.content.Type, w.content.Annotations[v1alpha1.SecretTypeAnnotation], w.content.Hash)))
	return hex.EncodeToString(sum[:16])
}

// objects returns the copies. They have the data, the type and the annotation of the original, and nothing
// else of it.
func (w *wanted) objects() []manifest.Object {
	if w == nil {
		return nil
	}
	data := make(map[string]any, len(w.content.Data))
	for key, value := range w.content.Data {
		data[key] = base64.StdEncoding.EncodeToString(value)
	}
	made := make([]manifest.Object, 0, len(w.namespaces))
	for _, namespace := range w.namespaces {
		made = append(made, manifest.Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1",
			"kind":       string(content.Secret),
			"metadata": map[string]any{
				"namespace": namespace,
				"name":      w.name,
				"labels":    map[string]any{v1alpha1.CopyOfLabel: w.hubID},
				"annotations": map[string]any{
					v1alpha1.SecretTypeAnnotation: w.content.Annotations[v1alpha1.SecretTypeAnnotation],
					v1alpha1.HoldAnnotation:       v1alpha1.HoldDisabled, // a credential that was replaced does not come back
				},
			},
			"type": string(w.content.Type),
			"data": data,
		}}})
	}
	return made
}

// wanted returns what should be copied to one API server, by name.
func (r *Reconciler) wanted(ctx context.Context, c *copier) (map[string]*wanted, error) {
	if c.isHub() {
		return r.wantedHere(ctx)
	}
	kc := &v1alpha1.KubernetesCluster{}
	if err := r.Client.Get(ctx, c.seed, kc); err != nil {
		return nil, fmt.Errorf("get cluster: %w", err)
	}
	if !r.isSeed(kc) {
		return nil, nil
	}
	all, err := r.originals(ctx)
	if err != nil {
		return nil, err
	}
	for _, w := range all {
		w.namespaces = []string{r.SystemNamespace}
	}
	return all, nil
}

// isSeed reports whether a KubernetesCluster is a seed that gets credentials: users who may write those of
// another namespace, and what they lead to, must not get them.
func (r *Reconciler) isSeed(kc *v1alpha1.KubernetesCluster) bool {
	return kc.IsSeed() && kc.Namespace == r.SystemNamespace
}

// wantedHere returns what should be copied to namespaces of the hub.
func (r *Reconciler) wantedHere(ctx context.Context) (map[string]*wanted, error) {
	if !r.ToNamespaces {
		return nil, nil
	}
	needed, err := r.needed(ctx)
	if err != nil || len(needed) == 0 {
		return nil, err
	}
	all, err := r.originals(ctx)
	if err != nil {
		return nil, err
	}
	here := map[string]*wanted{}
	for name, namespaces := range needed {
		if w := all[name]; w != nil {
			slices.Sort(namespaces)
			w.namespaces = slices.Compact(namespaces)
			here[name] = w
		}
	}
	return here, nil
}

// needed returns the namespaces that need a Secret, by its name: those of KubernetesClusters that are offered
// a definition which names it, or in which an installation of one was begun while it was offered.
func (r *Reconciler) needed(ctx context.Context) (map[string][]string, error) {
	clusters := &v1alpha1.KubernetesClusterList{}
	if err := r.Client.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	definitions := &v1alpha1.ApplicationDefinitionList{}
	if err := r.Client.List(ctx, definitions, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list definitions: %w", err)
	}
	needed := map[string][]string{}
	for i := range definitions.Items {
		definition := &definitions.Items[i]
		names := definition.GetSecrets()
		if len(names) == 0 {
			continue
		}
		selector, err := validation.OfferSelector(definition)
		for j := range clusters.Items {
			kc := &clusters.Items[j]
			offered := err == nil && selector.Matches(labels.Set(kc.Labels)) || kc.HasBegun(definition, kc.Status.UID)
			if kc.Namespace == r.SystemNamespace || kc.IsSeed() || !offered {
				continue
			}
			for _, name := range names {
				needed[name] = append(needed[name], kc.Namespace)
			}
		}
	}
	return needed, nil
}

// originals returns the Secrets of the system namespace that are source credentials, without namespaces to
// copy them to. One that a KubernetesCluster is reached with is none, whatever its annotations say.
func (r *Reconciler) originals(ctx context.Context) (map[string]*wanted, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := r.metadata.List(ctx, list, client.InNamespace(r.SystemNamespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Secrets: %w", err)
	}
	kubeconfigs, err := r.kubeconfigs(ctx)
	if err != nil {
		return nil, err
	}
	found := map[string]*wanted{}
	for i := range list.Items {
		o := &list.Items[i]
		if !isCredential(o.Annotations) || !o.DeletionTimestamp.IsZero() || kubeconfigs[o.Name] {
			continue
		}
		read, err := r.Secrets.Get(ctx, content.Secret, types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, err
		case isCredential(read.Annotations): // what is sent is what was annotated
			found[o.Name] = &wanted{name: o.Name, content: read, hubID: r.HubID}
		}
	}
	return found, nil
}

func isCredential(annotations map[string]string) bool {
	_, marked := annotations[v1alpha1.SecretTypeAnnotation]
	return marked
}

// kubeconfigs returns the names of the Secrets of the system namespace that KubernetesClusters are reached
// with.
func (r *Reconciler) kubeconfigs(ctx context.Context) (map[string]bool, error) {
	list := &v1alpha1.KubernetesClusterList{}
	if err := r.Client.List(ctx, list, client.InNamespace(r.SystemNamespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	names := map[string]bool{}
	for i := range list.Items {
		if ref := list.Items[i].Spec.KubeconfigSecretRef; ref != nil {
			names[ref.Name] = true
		}
	}
	return names, nil
}
