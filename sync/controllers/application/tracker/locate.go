package tracker

import (
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/sync/cluster/watch"
)

// Missing records that the API server no longer serves a resource, as a caller found out when
// reading or writing an object of it: the watch may last for minutes yet.
func (c *Tracker) Missing(resource schema.GroupVersionResource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.kinds {
		if k.sink != nil && k.state.Resource == resource {
			k.sink.replace()
		}
	}
}

func namespaced(mapping *meta.RESTMapping) bool {
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace
}

// locate finds the resource of the kind. Discovery may be out of date, so for a kind that is no
// longer served under its last resource, or whose scope may have changed, its definition is asked
// first.
func (k *kind) locate() (*meta.RESTMapping, error) {
	k.tracker.mu.RLock()
	lost, scoped := k.lost, k.state.Phase == ClusterScoped
	k.tracker.mu.RUnlock()
	if lost.Empty() && !scoped {
		return k.discover()
	}
	mapping, err := k.define()
	if err == nil && scoped && !namespaced(mapping) {
		return mapping, nil // as it was
	}
	meta.MaybeResetRESTMapper(k.tracker.target.Mapper())
	if err == nil || scoped || isNotEstablished(err) {
		return mapping, err
	}
	mapping, err = k.discover()
	if err == nil && mapping.Resource == lost {
		// Discovery lags behind. What it still says must not outlive the definition: the kind may be
		// defined again in another scope.
		meta.MaybeResetRESTMapper(k.tracker.target.Mapper())
		return nil, watch.NoDefinitionError{Kind: mapping.GroupVersionKind}
	}
	return mapping, err
}

// discover asks discovery first. If a CustomResourceDefinition defines a kind that discovery calls
// cluster-scoped, that definition is followed from then on.
func (k *kind) discover() (*meta.RESTMapping, error) {
	mapping, err := k.tracker.target.Mapper().RESTMapping(k.gk)
	if meta.IsNoMatchError(err) {
		return k.define()
	}
	if err != nil || namespaced(mapping) {
		return mapping, err
	}
	defined, err := k.define()
	_, builtIn := errors.AsType[watch.NoDefinitionError](err)
	_, hidden := errors.AsType[watch.HiddenError](err)
	if builtIn || hidden {
		return mapping, nil
	}
	return defined, err
}

// define asks the CustomResourceDefinition of the kind. If there is none, or none that is served,
// the kind is resolved again when that changes.
func (k *kind) define() (*meta.RESTMapping, error) {
	mapping, err := k.tracker.definitions.Find(k.tracker.ctx, k, k.gk.WithVersion(""))
	if err == nil {
		k.tracker.mu.Lock()
		k.defined = true
		k.tracker.mu.Unlock()
	}
	return mapping, err
}

func isNotEstablished(err error) bool {
	_, found := errors.AsType[watch.NotEstablishedError](err)
	return found
}
