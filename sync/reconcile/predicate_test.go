package reconcile_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

func TestChanged_filtersOutStatusWrites(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*v1alpha1.GitSync)
		want   bool
		reason string
	}{
		"spec":          {func(gs *v1alpha1.GitSync) { gs.Generation++ }, true, "the API server counts changes of the spec"},
		"asked":         {func(gs *v1alpha1.GitSync) { gs.Annotations[v1alpha1.ReconcileAtAnnotation] = "now" }, true, "somebody asks for a pass"},
		"asked no more": {func(gs *v1alpha1.GitSync) { gs.Annotations = nil }, true, "the annotation is mirrored in the status"},
		"status":        {func(gs *v1alpha1.GitSync) { gs.Status.ObservedGeneration, gs.ResourceVersion = 3, "2" }, false, "a pass wrote it"},
		"mark":          {func(gs *v1alpha1.GitSync) { gs.Labels = map[string]string{"team": "a"} }, false, "most kinds ignore labels"},
	} {
		was, is := newGitSync(), newGitSync()
		c.change(is)
		assert.Equal(t, c.want, reconcile.Changed().Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}), "%s: %s", name, c.reason)
	}
	assert.True(t, reconcile.Changed().Create(event.CreateEvent{Object: newGitSync()}))
	assert.True(t, reconcile.Changed().Delete(event.DeleteEvent{Object: newGitSync()}))
}
