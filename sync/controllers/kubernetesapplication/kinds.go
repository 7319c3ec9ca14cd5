package kubernetesapplication

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/watch"
)

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// definedKind returns the kind that a template defines, if it is a CustomResourceDefinition.
func definedKind(t v1alpha1.ObjectTemplate) (schema.GroupKind, bool) {
	if t.GroupVersionKind().GroupKind() != definitionKind {
		return schema.GroupKind{}, false
	}
	object, err := t.Object()
	if err != nil {
		return schema.GroupKind{}, false
	}
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}, kind != ""
}

// definitions are the kinds that one cluster defines; applications wait for them.
type definitions = watch.Definitions[types.NamespacedName]

// kinds knows what clusters serve, and enqueues the applications that wait for a kind. A cluster's
// CustomResourceDefinitions are watched only while an application waits for one.
type kinds struct {
	// tell enqueues an application.
	tell func(types.NamespacedName)
	// pollers are for kinds that no CustomResourceDefinition may ever announce.
	pollers *discoveryPollers
	// definitions has what is known of each cluster.
	definitions cluster.Engaged[*cluster.Cluster, *definitions]
}

func newKinds(tell func(types.NamespacedName)) *kinds {
	return &kinds{tell: tell, pollers: newDiscoveryPollers(tell)}
}

// absent returns why a kind that discovery does not know is not served, or nil if a definition of
// it is there already. The application is enqueued when that may have changed.
func (k *kinds) absent(ctx context.Context, c *cluster.Cluster, app types.NamespacedName, gvk schema.GroupVersionKind) error {
	var (
		undefined watch.NoDefinitionError
		pending   watch.NotEstablishedError
		hidden    watch.HiddenError
	)
	known := k.of(c)
	_, err := known.Find(ctx, app, gvk)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &pending):
		return err
	case errors.As(err, &undefined):
		if !known.Defines(gvk.Group) {
			k.pollers.add(c, app, gvk)
		}
		return err
	case errors.As(err, &hidden):
		k.pollers.add(c, app, gvk)
		return watch.NoDefinitionError{Kind: gvk}
	default:
		return unanswered(ctx, err)
	}
}

// of returns the definitions of a cluster, which end when it is disengaged.
func (k *kinds) of(c *cluster.Cluster) *definitions {
	return k.definitions.Of(c.Context(), c, func() *definitions {
		return watch.NewDefinitions(c.Context(), c, func(apps []types.NamespacedName) {
			for _, app := range apps {
				k.tell(app)
			}
		})
	})
}

// leave ends all waiting of an application.
func (k *kinds) leave(app types.NamespacedName) {
	k.pollers.leave(app)
	for _, d := range k.definitions.All() {
		d.Leave(app, nil)
	}
}
