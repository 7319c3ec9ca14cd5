package applicationrollback_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// behind is a client whose cache has an older state of a rollback at first.
type behind struct {
	client.Client

	once sync.Once
	old  *v1alpha1.ApplicationRollback
}

func (b *behind) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := b.Client.Get(ctx, key, obj, opts...)
	if r, is := obj.(*v1alpha1.ApplicationRollback); is && err == nil {
		b.once.Do(func() { b.old.DeepCopyInto(r) })
	}
	return err
}

// begun has a process begin a rollback, and stops it when that restores volumes. The driver is busy until release is called.
func (w *world) begun() (r *v1alpha1.ApplicationRollback, release func()) {
	w.T.Helper()
	release = w.busy()
	r = w.rollback("back", "one")
	process := w.alone(nil)
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackRestoring)
	process.Stop()
	return r, release
}

// C22, C64: a process whose cache is older than what the one before it has recorded does nothing of that again.
func TestRollback_goesOnFromWhatIsRecorded(t *testing.T) {
	t.Parallel()
	w := newIdleWorld(t)
	w.install(volumes.ImmediateClass)
	w.write(before)
	w.snapshot("one")
	w.write(after)
	r, release := w.begun()
	defer release()
	old := r.DeepCopy()
	release()
	process := w.alone(nil)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	process.Stop()

	restored := r.Status.Volumes[0].After
	mine := func(ns string) bool { return ns == w.Namespace }
	cache := true
	w.start(nil, func(c client.Client) client.Client {
		if cache {
			cache = false
			return &behind{Client: &some{c, mine}, old: old}
		}
		return &some{c, mine}
	})
	hub.Reconcile(w.World, r)
	w.requireNothingBeside()
	require.True(t, w.Exists(r, r.Name))
	assert.Equal(t, v1alpha1.RollbackCompleted, r.Status.Phase)
	assert.Equal(t, restored, r.Status.Volumes[0].After)
	w.requireState(before)
}

// C22: the time in which no process runs does not count for going back: there is no other way.
func TestRollback_goesBackAfterALongPause(t *testing.T) {
	t.Parallel()
	w := newIdleWorld(t)
	w.install(volumes.ImmediateClass)
	w.write(before)
	w.snapshot("one")
	w.write(after)
	r, release := w.begun()
	defer release()
	was := r.DeepCopy()
	r.Status.Phase, r.Status.PhaseTime = v1alpha1.RollbackReverting, ptr.To(metav1.NewTime(time.Now().Add(-time.Hour)))
	require.NoError(t, w.Client.Status().Patch(t.Context(), r, client.MergeFrom(was)))
	w.alone(nil)
	w.awaitPhase(r, v1alpha1.RollbackReverted)
	w.requireState(after)
	w.requireNothingBeside()
}

// C65: a rollback waits until the application is restored, which would create the claims again that the rollback replaces.
func TestRollback_waitsForARestore(t *testing.T) {
	t.Parallel()
	w := captured(t)
	app := &v1alpha1.StatefulApplication{}
	require.True(t, w.Exists(app, "db"))
	enter := func(phase v1alpha1.RestorePhase) {
		was := app.DeepCopy()
		app.Status.Restore = &v1alpha1.RestoreStatus{Phase: phase}
		require.NoError(t, w.Client.Status().Patch(t.Context(), app, client.MergeFrom(was)))
	}
	enter(v1alpha1.RestoreObjects)
	r := w.rollback("back", "one")
	w.Create(r)
	assert.Contains(t, hub.AwaitReason(w.World, r, v1alpha1.RollbackWaitsReason), `waiting for StatefulApplication "db" to restore the application`)
	enter(v1alpha1.RestoreCompleted)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	w.requireState(before)
}
