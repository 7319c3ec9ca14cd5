package applicationsnapshot_test

import (
	"context"
	"sync"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// S87, C63: while a rollback changes an application, no snapshot of it is taken, and it is when that has ended.
func TestSnapshot_waitsForARollback(t *testing.T) {
	for name, test := range map[string]struct {
		at    v1alpha1.RollbackPhase
		free  bool // is the snapshot to go on
		twin  bool // is it of another StatefulApplication of the Application
		ended func(w *world, b *v1alpha1.ApplicationRollback)
	}{
		"that scales down":      {at: v1alpha1.RollbackScalingDown, ended: completed},
		"that swaps volumes":    {at: v1alpha1.RollbackSwapping, ended: completed},
		"of a twin":             {at: v1alpha1.RollbackRestoring, twin: true, ended: completed},
		"that is undone":        {at: v1alpha1.RollbackReverting, ended: completed},
		"until it is deleted":   {at: v1alpha1.RollbackApplying, ended: (*world).deleteRollback},
		"but is one of its own": {at: v1alpha1.RollbackSaving, free: true},
		"but not if it waits":   {at: v1alpha1.RollbackPending, free: true},
		"but not afterwards":    {at: v1alpha1.RollbackCompleted, free: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.application("data")
			b := w.rollback(test.at, func(b *v1alpha1.ApplicationRollback) {
				if test.twin {
					b.Spec.ApplicationName = "twin"
				}
			})
			s := w.take()
			if !test.free {
				w.awaitMessage(s, `waiting for ApplicationRollback "back" of the application to end`)
				assert.Equal(t, v1alpha1.SnapshotPending, s.Status.Phase)
				assert.Zero(t, w.hooks())
				test.ended(w, b)
			}
			hub.AwaitReady(w.World, s)
			assert.Equal(t, v1alpha1.ConsistencyApplication, s.Status.Consistency)
		})
	}
}

// S87, C63: a rollback that begins while a snapshot is being taken waits for that one, and those that wait for it make way
// for the rollback. One that did not wait fails it.
func TestSnapshot_isTakenBeforeARollbackThatBegins(t *testing.T) {
	for name, at := range map[string]v1alpha1.RollbackPhase{"and waits": v1alpha1.RollbackHolding, "and does not": v1alpha1.RollbackScalingDown} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.application("data")
			w.action("lock", "echo lock >>data/log; while ! test -e data/go; do sleep 0.1; done", "")
			first := w.take()
			w.awaitPhase(first, v1alpha1.SnapshotQuiescing)
			second := w.snapshot("second")
			w.awaitMessage(second, "waiting for another ApplicationSnapshot of the application to release it")
			b := w.rollback(at)
			w.awaitMessage(second, `waiting for ApplicationRollback "back" of the application to end`)
			assert.Equal(t, v1alpha1.SnapshotPending, second.Status.Phase)
			w.sh("db-0", "touch data/go")
			if at == v1alpha1.RollbackHolding {
				hub.AwaitReady(w.World, first)
				assert.Equal(t, v1alpha1.ConsistencyApplication, first.Status.Consistency)
			} else {
				failure := w.awaitFailed(first)
				assert.Equal(t, v1alpha1.NotQuiescedReason, failure.Reason)
				assert.Contains(t, failure.Message, `ApplicationRollback "back" began before the volumes were cut`)
			}
			completed(w, b)
			hub.AwaitReady(w.World, second)
			assert.Equal(t, v1alpha1.ConsistencyApplication, second.Status.Consistency)
			assert.Equal(t, "lock unlock lock unlock", w.sh("db-0", "cat data/log"))
		})
	}
}

// S87, C63: a rollback that begins at the very moment at which a snapshot does, so that it may not have seen that one, is
// seen by it.
func TestSnapshot_seesARollbackThatBeginsAtTheSameTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.application("data")
	b := w.rollback(v1alpha1.RollbackSaving)
	var once sync.Once
	w.handle(func(ctx context.Context, made write) error {
		if made.phase == v1alpha1.SnapshotCapturing {
			once.Do(func() {
				change := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Holding"}}`))
				assert.NoError(t, w.Client.Status().Patch(ctx, b.DeepCopy(), change))
			})
		}
		return made.carryOut()
	})
	s := w.take()
	w.awaitMessage(s, `waiting for ApplicationRollback "back" of the application to end`)
	assert.Equal(t, v1alpha1.SnapshotPending, s.Status.Phase)
	assert.Zero(t, w.hooks())
	completed(w, b)
	hub.AwaitReady(w.World, s)
	assert.Equal(t, v1alpha1.ConsistencyApplication, s.Status.Consistency)
}

// S87, C63: what belongs to an application is looked up again if a rollback has begun and ended since, which the cache may
// not have shown.
func TestSnapshot_noticesARollbackThatEndsMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.application("data")
	b := w.rollback(v1alpha1.RollbackSaving)
	var once sync.Once
	w.handle(func(ctx context.Context, made write) error {
		if made.phase == v1alpha1.SnapshotCapturing {
			once.Do(func() {
				other := w.set()
				other.ObjectMeta = metav1.ObjectMeta{Name: "other", Labels: other.Labels}
				other.Spec.Replicas = ptr.To[int32](0)
				w.Create(other)
				completed(w, b)
			})
		}
		return made.carryOut()
	})
	s := w.take()
	hub.AwaitReady(w.World, s)
	w.letBe()
	after := w.snapshot("after")
	hub.AwaitReady(w.World, after)
	assert.Equal(t, after.Status.Objects, s.Status.Objects, "it holds the definitions of after the rollback")
}

// rollback creates an ApplicationRollback of the application that is at a phase. No controller acts on it.
func (w *world) rollback(at v1alpha1.RollbackPhase, edit ...func(*v1alpha1.ApplicationRollback)) *v1alpha1.ApplicationRollback {
	w.T.Helper()
	b := &v1alpha1.ApplicationRollback{
		ObjectMeta: metav1.ObjectMeta{Name: "back"},
		Spec: v1alpha1.ApplicationRollbackSpec{
			ApplicationName: "db", SnapshotClassName: w.Namespace,
			Source: v1alpha1.DataSource{Type: v1alpha1.DataSourceSnapshot, SnapshotRef: &v1alpha1.SnapshotReference{Name: "earlier"}},
		},
	}
	for _, e := range edit {
		e(b)
	}
	w.Create(b)
	w.goOn(b, at)
	return b
}

func (w *world) goOn(b *v1alpha1.ApplicationRollback, to v1alpha1.RollbackPhase) {
	w.T.Helper()
	before := b.DeepCopy()
	b.Status.Phase, b.Status.ApplicationName = to, "db"
	require.NoError(w.T, w.Client.Status().Patch(w.T.Context(), b, client.MergeFrom(before)))
}

func completed(w *world, b *v1alpha1.ApplicationRollback) { w.goOn(b, v1alpha1.RollbackCompleted) }

func (w *world) deleteRollback(b *v1alpha1.ApplicationRollback) {
	require.NoError(w.T, w.Client.Delete(w.T.Context(), b))
}

// awaitMessage waits until a snapshot says something.
func (w *world) awaitMessage(s *v1alpha1.ApplicationSnapshot, message string) {
	w.T.Helper()
	hub.Await(w.World, s, "does not say "+message, func(s *v1alpha1.ApplicationSnapshot) bool {
		return conditions.GetMessage(s, v1alpha1.ReadyCondition) == message
	})
}
