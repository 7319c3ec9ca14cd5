package kubernetesapplicationresource_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// behind is the cache of a process that is behind for applications or KubernetesClusters, as after
// the break of one watch, and not for resources.
type behind struct {
	client.Client
	mu        sync.Mutex
	app       *v1alpha1.KubernetesApplication
	noCluster bool
	asked     bool
}

func (b *behind) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch o := o.(type) {
	case *v1alpha1.KubernetesApplication:
		if b.app != nil {
			b.app.DeepCopyInto(o)
			return nil
		}
	case *v1alpha1.KubernetesCluster:
		if b.noCluster {
			b.asked = true
			return apierrors.NewNotFound(schema.GroupResource{Resource: "kubernetesclusters"}, key.Name)
		}
	}
	return b.Client.Get(ctx, key, o, opts...)
}

func (b *behind) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// newBehindWorld returns a world with a process whose cache can be behind.
func newBehindWorld(t *testing.T) (*world, *behind) {
	t.Helper()
	w, b := newOwnWorld(t), &behind{}
	w.process = startWith(t, ownProcess+"="+w.Namespace, func(c client.Client) client.Client {
		b.Client = c
		return b
	})
	t.Cleanup(w.stop)
	w.connect(w.berlin)
	return w, b
}

// C40: an application that is gone has not deleted its resources, though a cache still shows it.
func TestBehind_ownerMissing(t *testing.T) {
	w, cache := newBehindWorld(t)
	kar := w.resource("web", w.berlin.configMap("web", "x"))
	app := w.application("app", "berlin", "web", kar.Spec.Template)
	hub.AwaitReady(w.World, w.submit(controlled(kar, app)))
	cache.set(func() { cache.app = app.DeepCopy() })
	require.NoError(t, w.Client.Delete(t.Context(), app))
	hub.AwaitReason(w.World, kar, v1alpha1.OwnerMissingReason)
	assert.True(t, w.berlin.Exists(&corev1.ConfigMap{}, "web"))

	hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) { k.OwnerReferences = nil })
	w.AwaitGone(kar, "web")
}

// C38: a cluster is not given up because a cache does not show its KubernetesCluster yet.
func TestBehind_clusterNotSeen(t *testing.T) {
	w, cache := newBehindWorld(t)
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "x"))))
	cache.set(func() { cache.noCluster = true })
	require.NoError(t, w.Client.Delete(t.Context(), kar))
	require.True(t, w.Eventually(func() (asked bool) {
		cache.set(func() { asked = cache.asked })
		return asked
	}))
	cache.set(func() { cache.noCluster = false })
	kc := &v1alpha1.KubernetesCluster{ObjectMeta: named("berlin")}
	kc.Namespace = w.Namespace
	hub.Change(w.World, kc, func(kc *v1alpha1.KubernetesCluster) { kc.Labels["seen"] = "now" })
	w.AwaitGone(kar, "web")
	assert.False(t, w.berlin.Exists(&corev1.ConfigMap{}, "web"))
}
