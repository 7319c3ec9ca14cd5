package kubernetesapplication

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/watch"
)

// askTimeout bounds a question to a cluster that stops to answer meanwhile.
const askTimeout = 5 * time.Second

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// definedKind is the kind that a template defines, where it is of a CustomResourceDefinition.
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

// definitions are those of one cluster; applications wait for them.
type definitions = watch.Definitions[types.NamespacedName]

// kinds knows what clusters serve, and wakes the applications that wait for a kind. A
// cluster's CustomResourceDefinitions are watched only while some application does.
type kinds struct {
	// tell wakes an application.
	tell func(types.NamespacedName)

	mu        sync.Mutex
	byCluster map[*cluster.Cluster]*definitions
}

func newKinds(tell func(types.NamespacedName)) *kinds {
	return &kinds{tell: tell, byCluster: map[*cluster.Cluster]*definitions{}}
}

// serves returns nil where the cluster serves a kind, in that version. Else the application
// is woken when that may have changed.
func (k *kinds) serves(ctx context.Context, c *cluster.Cluster, app types.NamespacedName, gvk schema.GroupVersionKind) error {
	_, err := c.Mapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if !meta.IsNoMatchError(err) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	_, err = k.of(c).Find(ctx, app, gvk)
	return err
}

// of returns the definitions of a cluster, which end when it is disengaged.
func (k *kinds) of(c *cluster.Cluster) *definitions {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known := k.byCluster[c]; known != nil {
		return known
	}
	made := watch.NewDefinitions(c.Context(), c, func(apps []types.NamespacedName) {
		for _, app := range apps {
			k.tell(app)
		}
	})
	k.byCluster[c] = made
	context.AfterFunc(c.Context(), func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.byCluster, c)
	})
	return made
}

// leave has an application wait for nothing any more.
func (k *kinds) leave(app types.NamespacedName) {
	k.mu.Lock()
	all := make([]*definitions, 0, len(k.byCluster))
	for _, d := range k.byCluster {
		all = append(all, d)
	}
	k.mu.Unlock()
	for _, d := range all {
		d.Leave(app, nil)
	}
}
