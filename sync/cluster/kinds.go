package cluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"waybill.dev/waybill/api/v1alpha1"
)

// kinds is the type information that the clients of all clusters share. It does not change once
// built.
type kinds struct {
	scheme *runtime.Scheme
	// own maps our own kinds without discovery. So an idle cluster needs no discovery, neither
	// requests nor memory, and an informer on a kind whose CRD does not exist yet simply retries.
	own meta.RESTMapper
}

// clusterScoped holds those of our kinds that have no namespace.
var clusterScoped = map[string]bool{v1alpha1.ApplicationDefinitionKind: true}

// newKinds builds on scheme or, if that is nil, on the kinds of Kubernetes and our own.
func newKinds(scheme *runtime.Scheme) (*kinds, error) {
	if scheme == nil {
		scheme = runtime.NewScheme()
		if err := clientgoscheme.AddToScheme(scheme); err != nil {
			return nil, fmt.Errorf("build scheme: %w", err)
		}
		if err := v1alpha1.AddToScheme(scheme); err != nil {
			return nil, fmt.Errorf("build scheme: %w", err)
		}
	}
	own := meta.NewDefaultRESTMapper([]schema.GroupVersion{v1alpha1.GroupVersion})
	for kind := range scheme.KnownTypes(v1alpha1.GroupVersion) {
		if !scheme.Recognizes(v1alpha1.GroupVersion.WithKind(kind + "List")) {
			continue
		}
		scope := meta.RESTScopeNamespace
		if clusterScoped[kind] {
			scope = meta.RESTScopeRoot
		}
		own.Add(v1alpha1.GroupVersion.WithKind(kind), scope)
	}
	return &kinds{scheme: scheme, own: own}, nil
}

// ownKind returns the kind of obj, and whether obj is a Go type of one of our kinds. Partial
// metadata and unstructured objects are not: they would start informers of their own.
func (k *kinds) ownKind(obj runtime.Object) (schema.GroupVersionKind, bool) {
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return schema.GroupVersionKind{}, false
	}
	gvk, err := apiutil.GVKForObject(obj, k.scheme)
	return gvk, err == nil && gvk.Group == v1alpha1.Group
}
