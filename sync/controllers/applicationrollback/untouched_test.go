package applicationrollback_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// S82, C35: what the snapshot does not have is not changed by a rollback, so it is not put back either when that goes back:
// its author was not asked for the right to write it, and others may have taken a right away with it.
func TestRollback_putsBackOnlyWhatItChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install(volumes.ImmediateClass)
	w.write(before)
	w.snapshot("one")
	left := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Labels: labels()}, Data: map[string]string{"may": "all"}}
	}
	w.Create(left("edited"))
	w.Create(left("revoked"))
	hub.Await(w.World, w.application(), "not all components are known", func(a *v1alpha1.Application) bool { return len(a.Status.Installed) >= 4 })
	w.write(after)
	release := w.busy()
	defer release()
	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackRestoring)
	require.Len(t, r.Status.Left, 2)
	hub.Change(w.World, left("edited"), func(c *corev1.ConfigMap) { c.Data = map[string]string{"may": "less"} })
	require.NoError(t, w.Client.Delete(t.Context(), left("revoked")))
	require.NoError(t, w.Client.Delete(t.Context(), r))
	w.AwaitGone(r, r.Name)
	w.requireState(after)
	edited := left("edited")
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(edited), edited))
	assert.Equal(t, map[string]string{"may": "less"}, edited.Data)
	assert.False(t, w.Exists(left("revoked"), "revoked"))
}
