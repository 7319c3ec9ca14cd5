package statefulapplication_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"waybill.dev/waybill/test/hub"
)

// S33, S34: a volume that was being made larger when its snapshot was taken is restored as large as its claim asked for.
func TestRestore_ofAClaimThatWasResized(t *testing.T) {
	w := newWorld(t)
	w.run()
	assets := &corev1.PersistentVolumeClaim{}
	require.True(t, w.Exists(assets, "shop-assets"))
	hub.Change(w.World, assets, func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("4Mi") // which no resizer carries out here
	})
	one := clone("one", w.class(nil), w.snapshot("before"))
	w.Create(one)
	hub.AwaitReady(w.World, one)
	w.awaitRunning("one-0")
	assert.Equal(t, "old\nlogo\n", w.sh("one-0", "cat data/file assets/logo"))
	require.True(t, w.Exists(assets, "one-assets"))
	assert.Equal(t, "4Mi", assets.Spec.Resources.Requests.Storage().String())
	assert.Equal(t, "4Mi", assets.Status.Capacity.Storage().String())
}
