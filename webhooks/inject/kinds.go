package inject

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiregistration.k8s.io,resources=apiservices,verbs=get;list;watch

// kindSources are the kinds whose objects add kinds to a cluster, or take them away.
var kindSources = []schema.GroupVersionKind{
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
}

func partial(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(gvk)
	return obj
}

func nameOnly(obj any) (any, error) {
	source, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, nil
	}
	return &metav1.PartialObjectMetadata{
		TypeMeta:   source.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{Name: source.Name, UID: source.UID, ResourceVersion: source.ResourceVersion},
	}, nil
}

// kinds maps kinds to resources. It asks the API server once for each kind, and again after forget.
type kinds struct {
	mapper *restmapper.DeferredDiscoveryRESTMapper
	known  map[schema.GroupKind]schema.GroupResource
	before map[schema.GroupKind]schema.GroupResource // forgotten, for when the API server does not answer
}

func newKinds(from discovery.DiscoveryInterface) *kinds {
	return &kinds{
		mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(from)),
		known:  map[schema.GroupKind]schema.GroupResource{},
		before: map[schema.GroupKind]schema.GroupResource{},
	}
}

// forget drops what is known of the kinds of these groups, and of kinds that were not found, so
// that they are looked up again.
func (k *kinds) forget(groups map[string]bool) {
	k.mapper.Reset()
	for gk, resource := range k.known {
		if groups[gk.Group] {
			k.before[gk] = resource
			delete(k.known, gk)
		}
	}
}

// resolver returns a function that looks up kinds. It leaves the first error in err, and then falls
// back to what was known before.
func (k *kinds) resolver(err *error) resolver {
	return func(gk schema.GroupKind) (schema.GroupResource, bool) {
		if resource, ok := k.known[gk]; ok {
			return resource, resource.Resource != ""
		}
		resource, found, failed := k.ask(gk)
		switch {
		case failed != nil:
			if *err == nil {
				*err = failed
			}
			resource = k.before[gk]
		case found:
			k.known[gk] = resource
			fallthrough
		default:
			delete(k.before, gk)
		}
		return resource, resource.Resource != ""
	}
}

// ask returns the zero resource for a kind that is cluster-scoped.
func (k *kinds) ask(gk schema.GroupKind) (resource schema.GroupResource, found bool, err error) {
	mapping, err := k.mapper.RESTMapping(gk)
	switch {
	case meta.IsNoMatchError(err):
		return resource, false, nil
	case err != nil:
		return resource, false, fmt.Errorf("find resource of kind %s: %w", gk, err)
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		return resource, true, nil
	}
	return mapping.Resource.GroupResource(), true, nil
}

// watchKinds calls changed with the group of each kind that comes or goes. Failures to watch are
// reported by the informers, and do not keep anything else from working.
func watchKinds(ctx context.Context, from cache.Cache, changed func(group string)) error {
	tell := func(obj any) {
		if last, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = last.Obj
		}
		if source, ok := obj.(*metav1.PartialObjectMetadata); ok {
			_, group, _ := strings.Cut(source.Name, ".") // <plural>.<group>, and <version>.<group>
			changed(group)
		}
	}
	for _, gvk := range kindSources {
		informer, err := from.GetInformer(ctx, partial(gvk), cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watch %s: %w", gvk.Kind, err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(obj any, initial bool) {
				if !initial {
					tell(obj)
				}
			},
			UpdateFunc: func(_, obj any) { tell(obj) },
			DeleteFunc: tell,
		})
		if err != nil {
			return fmt.Errorf("watch %s: %w", gvk.Kind, err)
		}
	}
	return nil
}
