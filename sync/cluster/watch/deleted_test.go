package watch_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"waybill.dev/waybill/sync/cluster/watch"
)

func TestDeleted_findsTheObject(t *testing.T) {
	gone := &corev1.Secret{}
	assert.Same(t, gone, watch.Deleted(gone))
	assert.Same(t, gone, watch.Deleted(cache.DeletedFinalStateUnknown{Key: "a/b", Obj: gone}), "the watch missed the deletion")
	assert.Nil(t, watch.Deleted(cache.DeletedFinalStateUnknown{Key: "a/b"}))
	assert.Nil(t, watch.Deleted("a/b"))
}
