package applicationinstallation_test

import (
	"slices"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// history is what `helm history` shows of the release `web`.
func (w *world) history() []string {
	w.T.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = ptr.To(w.Cluster.KubeconfigFile()), &w.Namespace
	helm := &action.Configuration{}
	require.NoError(w.T, helm.Init(flags, w.Namespace, "secret", func(string, ...any) {}))
	found, err := action.NewHistory(helm).Run("web")
	require.NoError(w.T, err)
	slices.SortFunc(found, func(a, b *helmrelease.Release) int { return a.Version - b.Version })
	var lines []string
	for _, r := range found {
		lines = append(lines, string(r.Info.Status)+": "+r.Info.Description)
	}
	return lines
}

// replicas installs the chart web with a number of replicas, and no hooks.
func (w *world) replicas(n int) *v1alpha1.ApplicationInstallation {
	w.T.Helper()
	return hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) { s.Values = values(w.T, replicas(n)) }))
}

func replicas(n int) map[string]any {
	return map[string]any{"replicas": n, "hook": map[string]any{"enabled": false}}
}

func (w *world) scale(inst *v1alpha1.ApplicationInstallation, n int) {
	w.T.Helper()
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.Values = values(w.T, replicas(n)) })
}

func isReplicas(w *world, n int32) bool {
	d := w.peekDeployment("web")
	return d != nil && ptr.Deref(d.Spec.Replicas, 0) == n
}

func (w *world) holdRelease(phase v1alpha1.RollbackPhase, revision int64) *v1alpha1.ApplicationRollback {
	w.T.Helper()
	return w.Rollback("back", phase, v1alpha1.HeldObject{
		ObjectReference: v1alpha1.ObjectReference{Group: v1alpha1.Group, Kind: v1alpha1.ApplicationInstallationKind, Name: "web"}, ReleaseRevision: revision,
	})
}

func isHeld(i *v1alpha1.ApplicationInstallation) bool {
	return conditions.IsTrue(i, v1alpha1.HeldCondition)
}

// C65: the release of an installation that was rolled back goes back to the revision that it had, and
// stays there until something else is wanted.
func TestInstallation_goesBackWithARollback(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	inst := w.replicas(2)
	w.scale(inst, 3)
	hub.Await(w.World, inst, "the upgrade", func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Status.Release.Revision == 2 && conditions.IsReady(i)
	})

	rollback := w.holdRelease(v1alpha1.RollbackApplying, 1)
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { hub.MarkHeld(i, "back") })
	inst = hub.Await(w.World, inst, "it is held", isHeld)
	hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](0) })
	inst = hub.Reconcile(w.World, inst)
	assert.True(t, isReplicas(w, 0), "drift is not corrected")
	assert.Len(t, w.history(), 2, "the rollback is at work on the objects still")

	w.Enter(rollback, v1alpha1.RollbackCompleted)
	inst = hub.Await(w.World, inst, "the release went back", func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Status.ReleaseHold != nil && i.Status.ReleaseHold.RolledBack && i.Status.Release.Revision == 3 && conditions.IsReady(i)
	})
	assert.Equal(t, []string{"superseded: Install complete", "superseded: Upgrade complete", "deployed: Rollback to 1"}, w.history())
	assert.True(t, isReplicas(w, 2))
	assert.Equal(t, v1alpha1.RolledBackReason, conditions.GetReason(inst, v1alpha1.HeldCondition))

	engageAnew()
	hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](5) })
	inst = hub.Reconcile(w.World, inst)
	assert.True(t, isReplicas(w, 5), "a restart keeps the hold")
	assert.Len(t, w.history(), 3)

	w.scale(inst, 4)
	inst = hub.Await(w.World, inst, "the upgrade", func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Status.Release.Revision == 4 && conditions.IsReady(i)
	})
	assert.True(t, isReplicas(w, 4), "something else is wanted")
	assert.False(t, isHeld(inst))
	assert.False(t, inst.Status.ReleaseHold.Holds())
}

// C65: what a user requests in the middle of a rollback is installed when that ends, which is watched.
func TestInstallation_isUpgradedWhenARollbackHasEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	inst := w.replicas(2)
	rollback := w.holdRelease(v1alpha1.RollbackSwapping, 1)
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { hub.MarkHeld(i, "back") })
	hub.Await(w.World, inst, "it is held", isHeld)
	w.scale(inst, 4)
	inst = hub.Reconcile(w.World, inst)
	assert.True(t, isReplicas(w, 2))
	w.Enter(rollback, v1alpha1.RollbackCompleted)
	hub.Await(w.World, inst, "the upgrade", func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Status.Release.Revision == 2 && conditions.IsReady(i) && isReplicas(w, 4)
	})
}

// C22, C63: what a snapshot has scaled to zero is not scaled up before its volumes are cut, and then at once.
func TestInstallation_leavesWhatASnapshotScalesToZero(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	inst := w.replicas(2)
	snapshot := &v1alpha1.ApplicationSnapshot{ObjectMeta: objectMeta("cold"), Spec: v1alpha1.ApplicationSnapshotSpec{
		SnapshotClassName: "any", Source: v1alpha1.SnapshotSource{Type: v1alpha1.SnapshotSourceApplication, ApplicationName: "web"},
	}}
	w.Create(snapshot)
	hold := func(held ...v1alpha1.ObjectReference) {
		before := snapshot.DeepCopy()
		snapshot.Status.Held = held
		require.NoError(t, w.Client.Status().Patch(t.Context(), snapshot, client.MergeFrom(before)))
	}
	hold(v1alpha1.ObjectReference{Group: v1alpha1.Group, Kind: v1alpha1.ApplicationInstallationKind, Namespace: w.Namespace, Name: "web"},
		v1alpha1.ObjectReference{Group: "apps", Kind: "Deployment", Namespace: w.Namespace, Name: "web"})
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { hub.MarkHeld(i, "snapshot:cold") })
	hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) {
		hub.MarkHeld(d, "snapshot:cold")
		d.Spec.Replicas = ptr.To[int32](0)
	})
	inst = hub.Await(w.World, inst, "it is held", isHeld)
	assert.Equal(t, v1alpha1.ScaledToZeroReason, conditions.GetReason(inst, v1alpha1.HeldCondition))
	assert.Contains(t, conditions.GetMessage(inst, v1alpha1.HeldCondition), "ApplicationSnapshot "+w.Namespace+"/cold holds the installation")
	hub.Reconcile(w.World, inst)
	assert.True(t, isReplicas(w, 0))

	hold()
	require.True(t, w.Eventually(func() bool { return isReplicas(w, 2) }), "no longer than the snapshot says, whatever the marks say")
	inst = hub.Await(w.World, inst, "it is not held", func(i *v1alpha1.ApplicationInstallation) bool { return !isHeld(i) && conditions.IsReady(i) })
	assert.EqualValues(t, 1, inst.Status.Release.Revision, "nothing was upgraded")
}

// C65: what is wanted is installed again when the hold is released.
func TestInstallation_isInstalledAgainWhenAHoldIsReleased(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	inst := w.replicas(2)
	w.scale(inst, 3)
	hub.Await(w.World, inst, "the upgrade", func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Status.Release.Revision == 2 && conditions.IsReady(i)
	})
	w.holdRelease(v1alpha1.RollbackCompleted, 1)
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { hub.MarkHeld(i, "back") })
	hub.Await(w.World, inst, "the release went back", func(i *v1alpha1.ApplicationInstallation) bool { return i.Status.Release.Revision == 3 && isHeld(i) })
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { hub.MarkHeld(i, "") })
	inst = hub.Await(w.World, inst, "it is upgraded again", func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Status.Release.Revision == 4 && conditions.IsReady(i)
	})
	assert.True(t, isReplicas(w, 3))
	assert.False(t, conditions.Has(inst, v1alpha1.HeldCondition))
	assert.Nil(t, inst.Status.ReleaseHold)
}

// C65: without that revision, the objects are held all the same; and no user holds a release by an
// annotation alone.
func TestInstallation_saysThatItCannotGoBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	inst := w.replicas(2)
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { hub.MarkHeld(i, "none") })
	hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
	require.True(t, w.Eventually(func() bool { return isReplicas(w, 2) }), "there is no such rollback")

	w.holdRelease(v1alpha1.RollbackCompleted, 9)
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { hub.MarkHeld(i, "back") })
	inst = hub.Await(w.World, inst, "it is told", func(i *v1alpha1.ApplicationInstallation) bool {
		return conditions.GetReason(i, v1alpha1.HeldCondition) == v1alpha1.NotRolledBackReason
	})
	assert.Contains(t, conditions.GetMessage(inst, v1alpha1.HeldCondition), "release "+w.Namespace+"/web has no revision 9 in its history any more; its objects are left")
	hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
	hub.Reconcile(w.World, inst)
	assert.True(t, isReplicas(w, 7))
}

// C65: objects of a kustomization are held one by one.
func TestInstallation_leavesAHeldObjectOfAKustomization(t *testing.T) {
	w := newWorld(t)
	file := func(value string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\ndata: {key: " + value + "}\n"
	}
	const other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: side}\ndata: {key: one}\n"
	w.kustomizations(map[string]string{
		"1.0.0/extra.yaml": file("new"), "1.0.0/side.yaml": other, "1.1.0/extra.yaml": file("newer"), "1.1.0/side.yaml": other,
	})
	inst := hub.AwaitReady(w.World, w.install(nil))
	w.Rollback("back", v1alpha1.RollbackCompleted, v1alpha1.HeldObject{ObjectReference: v1alpha1.ObjectReference{Kind: "ConfigMap", Name: "extra"}})
	extra, side := &corev1.ConfigMap{}, &corev1.ConfigMap{}
	require.True(t, w.Exists(extra, "extra"))
	hub.Change(w.World, extra, func(cm *corev1.ConfigMap) {
		hub.MarkHeld(cm, "back")
		cm.Data["key"] = "old"
	})
	inst = hub.Await(w.World, inst, "it is held", isHeld)
	require.True(t, w.Exists(side, "side"))
	hub.Change(w.World, side, func(cm *corev1.ConfigMap) { cm.Data["key"] = "edited" })
	require.True(t, w.Eventually(func() bool { return w.page("side") == "one" }), "others are corrected")
	assert.Equal(t, "old", w.page("extra"))

	engageAnew()
	hub.Change(w.World, side, func(cm *corev1.ConfigMap) { cm.Data["key"] = "edited" })
	require.True(t, w.Eventually(func() bool { return w.page("side") == "one" }), "others are corrected")
	assert.Equal(t, "old", w.page("extra"), "a restart keeps the hold")

	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "1.1.0" })
	require.True(t, w.Eventually(func() bool { return w.page("extra") == "newer" }), "another version takes it up again")
	hub.Await(w.World, inst, "it is not held any more", func(i *v1alpha1.ApplicationInstallation) bool { return !conditions.Has(i, v1alpha1.HeldCondition) })
}

// C65: a rollback that is at work is not disturbed before its mark on the installation is seen.
func TestInstallation_isHeldByTheMarksOfItsObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	inst := w.replicas(2)
	rollback := w.holdRelease(v1alpha1.RollbackScalingDown, 1)
	hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) {
		hub.MarkHeld(d, "back")
		d.Spec.Replicas = ptr.To[int32](0)
	})
	inst = hub.Await(w.World, inst, "it is held", isHeld)
	hub.Reconcile(w.World, inst)
	assert.True(t, isReplicas(w, 0))
	w.Enter(rollback, v1alpha1.RollbackReverted)
	hub.Reconcile(w.World, inst)
	require.True(t, w.Eventually(func() bool { return isReplicas(w, 2) }), "a mark of an object alone holds nothing any more")
}
