package reconcile_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

// C11, K53
func TestAddFinalizer_isWrittenOnceAndTakesBackNothing(t *testing.T) {
	w := newWorld(t, newGitSync())
	gs, old := w.get(t), w.get(t)
	require.NoError(t, reconcile.AddFinalizer(t.Context(), w.client, gs))
	assert.Equal(t, []string{v1alpha1.Finalizer}, w.get(t).Finalizers)
	assert.Equal(t, w.get(t).ResourceVersion, gs.ResourceVersion, "the pass goes on with what was stored")

	require.NoError(t, reconcile.AddFinalizer(t.Context(), w.client, gs))
	assert.Equal(t, w.get(t).ResourceVersion, gs.ResourceVersion, "what is there is not written again")
	assert.True(t, apierrors.IsConflict(reconcile.AddFinalizer(t.Context(), w.client, old)), "others may have written finalizers since")
}

// C11
func TestRemoveFinalizer_isWrittenOnceAndAcceptsThatTheObjectIsGone(t *testing.T) {
	held := newGitSync()
	held.Finalizers = []string{"example.com/other", v1alpha1.Finalizer}
	w := newWorld(t, held)
	gs, old := w.get(t), w.get(t)
	require.NoError(t, reconcile.RemoveFinalizer(t.Context(), w.client, gs))
	assert.Equal(t, []string{"example.com/other"}, w.get(t).Finalizers, "those of others stay")

	require.NoError(t, reconcile.RemoveFinalizer(t.Context(), w.client, gs))
	assert.Equal(t, w.get(t).ResourceVersion, gs.ResourceVersion, "what is gone is not written again")
	assert.True(t, apierrors.IsConflict(reconcile.RemoveFinalizer(t.Context(), w.client, old.DeepCopy())), "others may have written finalizers since")

	gone := w.get(t)
	gone.Finalizers = nil
	require.NoError(t, w.client.Update(t.Context(), gone))
	require.NoError(t, w.client.Delete(t.Context(), gone))
	require.NoError(t, reconcile.RemoveFinalizer(t.Context(), w.client, old), "there is nothing left to remove it from")
}
