package applicationrollback_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/hold"
	"waybill.dev/waybill/test/env/volumes"
	"waybill.dev/waybill/test/hub"
)

// S77, S84: what cannot succeed fails before anything is changed.
func TestRollback_isRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install(volumes.ImmediateClass)
	w.write(before)
	w.Create(&v1alpha1.ApplicationSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Snapshotter: v1alpha1.DataHandler, Quiesce: v1alpha1.QuiesceScaleDown,
	})
	w.Create(volumes.Pod(w.Namespace, "stray", "data-db-0"))
	w.awaitRunning("stray")
	w.snapshot("one")
	foreign := w.snapshot("foreign")
	content := &v1alpha1.ApplicationSnapshotContent{}
	require.True(t, w.Exists(content, foreign.Status.BoundSnapshotContentName))
	was := content.DeepCopy()
	content.Status.ApplicationName = "shop"
	require.NoError(t, w.Client.Status().Patch(t.Context(), content, client.MergeFrom(was)))
	for name, test := range map[string]struct {
		edit    func(*v1alpha1.ApplicationRollback)
		message string
	}{
		"class":     {func(r *v1alpha1.ApplicationRollback) { r.Spec.SnapshotClassName = "none" }, `ApplicationSnapshotClass "none" does not exist`},
		"app":       {func(r *v1alpha1.ApplicationRollback) { r.Spec.ApplicationName = "none" }, `StatefulApplication "none" does not exist`},
		"snapshot":  {func(r *v1alpha1.ApplicationRollback) { r.Spec.Source.SnapshotRef.Name = "none" }, `ApplicationSnapshot "none" does not exist`},
		"foreign":   {func(r *v1alpha1.ApplicationRollback) { r.Spec.Source.SnapshotRef.Name = "foreign" }, `is one of StatefulApplication "shop", not of "db"`},
		"namespace": {func(r *v1alpha1.ApplicationRollback) { r.Spec.Source.SnapshotRef.Namespace = "default" }, `is in namespace "default"`},
		"rest":      {func(r *v1alpha1.ApplicationRollback) { r.Spec.SnapshotClassName = w.Namespace }, `if the application cannot be brought to rest as its class says`},
	} {
		r := w.rollback(name, "one")
		test.edit(r)
		w.Create(r)
		w.awaitPhase(r, v1alpha1.RollbackFailed)
		assert.Contains(t, r.Status.Error.Message, test.message, name)
		assert.Empty(t, r.Status.Held)
		require.NoError(t, w.Client.Delete(t.Context(), r))
		w.AwaitGone(r, r.Name)
	}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "db"}}
	hub.Change(w.World, set, func(s *appsv1.StatefulSet) {
		s.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
		}
	})
	require.NoError(t, w.Client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "stray"}}))
	w.AwaitGone(&corev1.Pod{}, "stray")
	r := w.rollback("cold", "one")
	r.Spec.SnapshotClassName = w.Namespace
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackFailed)
	assert.Contains(t, r.Status.Error.Message, `StatefulSet "db" cannot be scaled to zero, because its claims are deleted with its Pods`)
	assert.Empty(t, r.Status.Held)
	w.requireState(before)
}

// S54: rollbacks of other snapshotters' classes are left alone.
func TestRollback_isSomebodyElses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := &v1alpha1.ApplicationSnapshotClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Snapshotter: "example.com", Quiesce: v1alpha1.QuiesceHooks}
	w.Create(other)
	theirs := w.rollback("theirs", "one")
	theirs.Spec.SnapshotClassName = other.Name
	shared.Lock()
	process := shared.process
	shared.Unlock()
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(other), other))
	w.AwaitSeen(process, other)
	w.Create(theirs)
	mine := w.rollback("mine", "one")
	w.Create(mine)
	w.awaitPhase(mine, v1alpha1.RollbackFailed)
	require.True(t, w.Exists(theirs, "theirs"))
	assert.Empty(t, theirs.Finalizers)
	assert.Empty(t, theirs.Status.Phase)
}

// Two rollbacks of an application take turns.
func TestRollback_waitsForAnother(t *testing.T) {
	t.Parallel()
	w := capturedTwice(t)
	release := w.busy()
	defer release()
	first, second := w.rollback("first", "one"), w.rollback("second", "two")
	w.Create(first)
	w.awaitPhase(first, v1alpha1.RollbackRestoring)
	w.Create(second)
	assert.Contains(t, hub.AwaitReason(w.World, second, v1alpha1.RollbackWaitsReason), `waiting for ApplicationRollback "first" of the same application`)
	require.True(t, w.Exists(first, "first"))
	assert.Equal(t, v1alpha1.RollbackRestoring, first.Status.Phase)
	release()
	w.awaitPhase(first, v1alpha1.RollbackCompleted)
	w.awaitPhase(second, v1alpha1.RollbackCompleted)
	w.requireState("c")

	w.decide(first, v1alpha1.RollbackUndone)
	assert.Contains(t, hub.AwaitReason(w.World, first, v1alpha1.UndoRefusedReason), "undo what replaced it first")
	w.decide(second, v1alpha1.RollbackUndone)
	w.awaitPhase(second, v1alpha1.RollbackReverted)
	w.awaitPhase(first, v1alpha1.RollbackReverted)
	w.requireState(after)
}

// Also one of another StatefulApplication of the Application, or of an Application that has its claims, takes turns.
func TestRollback_waitsForOneOfItsVolumes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ application, message string }{
		"of the same application": {"db", `waiting for ApplicationRollback "first" of the same application`},
		"of its claims":           {"claims", `waiting for ApplicationRollback "first", which replaces the volume of PersistentVolumeClaim "data-db-0" as well`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.install(volumes.ImmediateClass)
			if test.application != "db" {
				w.Create(&v1alpha1.Application{
					ObjectMeta: metav1.ObjectMeta{Name: test.application},
					Spec: v1alpha1.ApplicationSpec{
						Type: "claims", Selector: &metav1.LabelSelector{MatchLabels: labels()},
						Components: []v1alpha1.ApplicationComponent{{Kind: "PersistentVolumeClaim"}},
					},
				})
			}
			w.Create(&v1alpha1.StatefulApplication{
				ObjectMeta: metav1.ObjectMeta{Name: "twin"}, Spec: v1alpha1.StatefulApplicationSpec{ApplicationName: test.application},
			})
			w.write(before)
			w.snapshot("one")
			w.write("c")
			w.snapshotOf("twin", "two")
			w.write(after)
			release := w.busy()
			defer release()
			first, second := w.rollback("first", "one"), w.rollback("second", "two")
			second.Spec.ApplicationName = "twin"
			w.Create(first)
			w.awaitPhase(first, v1alpha1.RollbackRestoring)
			w.Create(second)
			assert.Contains(t, hub.AwaitReason(w.World, second, v1alpha1.RollbackWaitsReason), test.message)
			require.True(t, w.Exists(second, "second"))
			assert.Equal(t, v1alpha1.RollbackPending, second.Status.Phase)
			require.NoError(t, w.Client.Delete(t.Context(), second))
			w.AwaitGone(second, "second")
			release()
			w.awaitPhase(first, v1alpha1.RollbackCompleted)
			w.requireState(before)
		})
	}
}

// C65: undone while another rollback of the application is under way, a rollback waits: the volumes that it restored are
// those that the other one goes back to.
func TestRollback_isUndoneWhenItIsItsTurn(t *testing.T) {
	t.Parallel()
	w := capturedTwice(t)
	first, second := w.rollback("first", "one"), w.rollback("second", "two")
	w.Create(first)
	w.awaitPhase(first, v1alpha1.RollbackCompleted)
	release := w.busy()
	defer release()
	w.Create(second)
	w.awaitPhase(second, v1alpha1.RollbackRestoring)
	w.decide(first, v1alpha1.RollbackUndone)
	assert.Contains(t, hub.AwaitReason(w.World, first, v1alpha1.RollbackWaitsReason), `waiting for ApplicationRollback "second" of the same application`)
	release()
	w.awaitPhase(second, v1alpha1.RollbackCompleted)
	assert.Contains(t, hub.AwaitReason(w.World, first, v1alpha1.UndoRefusedReason), "undo what replaced it first")
	w.requireState("c")
	w.decide(second, v1alpha1.RollbackUndone)
	w.awaitPhase(second, v1alpha1.RollbackReverted)
	w.awaitPhase(first, v1alpha1.RollbackReverted)
	w.requireState(after)
}

// C22: a rollback that failed half way does not go back over what another one has restored since.
func TestRollback_isNotTriedAgainOverAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install(volumes.ImmediateClass)
	w.write(after)
	w.Create(&v1alpha1.ApplicationSnapshotClass{ // so that it is left alone until it has failed
		ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Snapshotter: "example.com", Quiesce: v1alpha1.QuiesceHooks,
	})
	now := w.claim("data-db-0").Spec.VolumeName
	r := w.rollback("back", "one")
	r.Spec.SnapshotClassName = w.Namespace
	w.Create(r)
	was := r.DeepCopy()
	r.Status.Phase, r.Status.Error = v1alpha1.RollbackFailed, &v1alpha1.DataError{Reason: v1alpha1.RollbackFailedReason, Message: "half way"}
	r.Status.Volumes = []v1alpha1.RollbackVolume{{Claim: "data-db-0", Before: "of-before", After: "restored"}}
	require.NoError(t, w.Client.Status().Patch(t.Context(), r, client.MergeFrom(was)))
	hub.Change(w.World, r, func(r *v1alpha1.ApplicationRollback) {
		r.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: "now"}
	})
	assert.Contains(t, hub.AwaitReason(w.World, r, v1alpha1.UndoRefusedReason), `PersistentVolumeClaim "data-db-0" has got another PersistentVolume, "`+now+`"`)
	require.True(t, w.Exists(r, "back"))
	assert.Equal(t, v1alpha1.RollbackFailed, r.Status.Phase)
	assert.Equal(t, now, w.claim("data-db-0").Spec.VolumeName)
	w.requireState(after)
}

// A rollback that is deleted before it is completed is reverted, and leaves nothing behind.
func TestRollback_isDeletedInTheMiddle(t *testing.T) {
	t.Parallel()
	w := captured(t)
	release := w.busy()
	defer release()
	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackRestoring)
	safety := r.Status.SafetySnapshot
	require.NoError(t, w.Client.Delete(t.Context(), r))
	w.AwaitGone(r, r.Name)
	w.requireState(after)
	w.requireNothingBeside()
	w.AwaitGone(&v1alpha1.ApplicationSnapshot{}, safety)
	settings := w.settings()
	require.True(t, w.Exists(settings, "settings"))
	_, held := hold.By(settings)
	assert.False(t, held)
}

// C64: with its namespace, a rollback ends in the middle, and its volumes go as those of deleted claims.
func TestRollback_goesWithItsNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.install(volumes.ImmediateClass)
	w.write(before)
	w.snapshot("one")
	w.Create(volumes.Pod(w.Namespace, "visitor", "data-db-0")) // so that it does not come to rest
	w.awaitRunning("visitor")
	old := w.claim("data-db-0").Spec.VolumeName
	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackScalingDown)
	require.True(t, w.Eventually(func() bool {
		volume := &corev1.PersistentVolume{}
		return w.Client.Get(t.Context(), client.ObjectKey{Name: old}, volume) == nil && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
	}))
	require.NoError(t, w.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}}))
	w.AwaitGone(r, r.Name)
	assert.True(t, w.Eventually(func() bool { return !w.volumeExists(old) }), "the volume of before is deleted, as its StorageClass says")
	w.AwaitGone(&corev1.Namespace{}, w.Namespace)
}

// C65: who deletes a rollback that is completed keeps what it has done.
func TestRollback_isDeletedAfterwards(t *testing.T) {
	t.Parallel()
	w := captured(t)
	old := w.claim("data-db-0").Spec.VolumeName
	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	require.NoError(t, w.Client.Delete(t.Context(), r))
	w.AwaitGone(r, r.Name)
	w.requireState(before)
	assert.True(t, w.Eventually(func() bool { return !w.volumeExists(old) }))
	settings := w.settings()
	require.True(t, w.Exists(settings, "settings"))
	_, held := hold.By(settings)
	assert.False(t, held)
}
