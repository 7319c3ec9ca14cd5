package applicationinstallation

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

// What no controller takes is reported, and what takes too long is not waited for by an upgrade that can do without.
func TestAwaitSnapshot_hasADeadline(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for reason, c := range map[string]struct {
		phase v1alpha1.SnapshotPhase
		try   bool
		after time.Duration
		want  string // empty: it is waited for
		look  time.Duration
	}{
		"just created":                  {after: time.Second, look: claimTime},
		"nobody takes it":               {after: claimTime, want: `no controller handles ApplicationSnapshot a/web-before of class "plain": run waybill-sync with role data in the cluster, or name another class`},
		"it is being taken":             {phase: v1alpha1.SnapshotCutting, after: time.Hour},
		"tried, and being taken":        {phase: v1alpha1.SnapshotCutting, try: true, after: time.Minute, look: tryTime},
		"tried, and taken for too long": {phase: v1alpha1.SnapshotWaiting, try: true, after: tryTime, want: "ApplicationSnapshot a/web-before was not ready within 30m0s"},
	} {
		t.Run(reason, func(t *testing.T) {
			before := v1alpha1.BeforeUpgrade{Snapshot: v1alpha1.SnapshotRequire}
			if c.try {
				before.Snapshot = v1alpha1.SnapshotTry
			}
			snapshot := &v1alpha1.ApplicationSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web-before", CreationTimestamp: metav1.NewTime(began)}}
			snapshot.Spec.SnapshotClassName, snapshot.Status.Phase = "plain", c.phase
			s := &scope{now: began.Add(c.after), session: &session{}}
			err := (&driver{}).awaitSnapshot(t.Context(), s, before, snapshot)
			none := &untaken{}
			if c.want == "" {
				require.False(t, errors.As(err, &none), "%v", err)
				assert.Equal(t, v1alpha1.SnapshotPendingReason, reconcile.ReasonOf(err))
			} else {
				require.ErrorAs(t, err, &none)
				assert.Equal(t, c.want, none.why)
			}
			if c.look == 0 {
				assert.Zero(t, s.session.snapshotAt)
				return
			}
			assert.Equal(t, began.Add(c.look), s.session.snapshotAt)
		})
	}
}

// What waits for an object is enqueued by that, until it waits no more or for something else.
func TestWaits_wakeWhoWaits(t *testing.T) {
	one, two := types.NamespacedName{Name: "one"}, types.NamespacedName{Name: "two"}
	db, anyOf, snapshot := awaited{installation: types.NamespacedName{Name: "db"}}, awaited{definition: "db"}, awaited{snapshot: types.NamespacedName{Name: "db"}}
	w := newWaits()
	w.set(one, db, anyOf)
	w.set(two, anyOf)
	assert.ElementsMatch(t, []types.NamespacedName{one}, w.of(db))
	assert.ElementsMatch(t, []types.NamespacedName{one, two}, w.of(db, anyOf), "each once")
	w.set(one, snapshot)
	assert.ElementsMatch(t, []types.NamespacedName{two}, w.of(db, anyOf))
	w.set(one)
	w.set(two)
	assert.Empty(t, w.of(db, anyOf, snapshot))
	assert.Empty(t, w.who)
	assert.Empty(t, w.on)
}
