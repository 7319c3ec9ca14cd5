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

// kinds is what all clients of all clusters know of types. It does not change once built.
type kinds struct {
	scheme *runtime.Scheme
	// own knows our own kinds without discovery, so that an idle cluster costs none and
	// holds none of it in memory, and an informer on a kind whose CRD is not there yet just
	// goes on trying.
	own meta.RESTMapper
}

// clusterScoped are those of our kinds that have no namespace.
var clusterScoped = map[string]bool{v1alpha1.ApplicationDefinitionKind: true}

// newKinds builds on scheme, or on Kubernetes' own kinds and ours where that is nil.
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

// ownKind says whether obj is a Go type of one of our kinds, and which. Metadata alone and
// unstructured objects are not: they would start informers of their own.
func (k *kinds) ownKind(obj runtime.Object) (schema.GroupVersionKind, bool) {
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return schema.GroupVersionKind{}, false
	}
	gvk, err := apiutil.GVKForObject(obj, k.scheme)
	return gvk, err == nil && gvk.Group == v1alpha1.Group
}
