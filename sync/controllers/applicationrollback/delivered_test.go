package applicationrollback_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyv1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env/volumes"
)

// C65: when a deliverer takes up an object again, all fields are its own: what it does not want of those
// that the rollback has put back is removed.
func TestRollback_leavesFieldsToWhoDelivers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install(volumes.ImmediateClass)
	require.NoError(t, w.Client.Delete(t.Context(), w.settings()))
	w.deliver(map[string]string{"mode": before, "more": before})
	w.sh("printf " + before + " >data/file")
	w.snapshot("one")
	w.deliver(map[string]string{"mode": after})

	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	settings := w.settings()
	require.True(t, w.Exists(settings, "settings"))
	assert.Equal(t, map[string]string{"mode": before, "more": before}, settings.Data)

	w.deliver(map[string]string{"mode": after})
	require.True(t, w.Exists(settings, "settings"))
	assert.Equal(t, map[string]string{"mode": after}, settings.Data)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
}

// C64: an undo period that is over leaves no volumes of before.
func TestRollback_confirmsItself(t *testing.T) {
	t.Parallel()
	w := captured(t)
	old := w.claim("data-db-0").Spec.VolumeName
	r := w.rollback("back", "one")
	r.Spec.UndoPeriod = &metav1.Duration{}
	r.Spec.Hold = new(bool)
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackFinal)
	w.requireState(before)
	assert.True(t, w.Eventually(func() bool { return !w.volumeExists(old) }))
	assert.Empty(t, r.Status.Held)
	assert.NotContains(t, w.claim("data-db-0").Annotations, v1alpha1.HeldByAnnotation)
}

// deliver applies the settings as a GitSync does.
func (w *world) deliver(data map[string]string) {
	w.T.Helper()
	settings := applyv1.ConfigMap("settings", w.Namespace).WithLabels(labels()).WithData(data)
	require.NoError(w.T, w.Client.Apply(w.T.Context(), settings, client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership))
}
