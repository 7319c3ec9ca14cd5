package applicationinstallation_test

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// atomically is an installation `web` of 1.0.0 that has data, in a namespace of its own, whose version 2.0.0 the
// API server refuses in the middle.
func (w *world) atomically(target string, snapshot v1alpha1.SnapshotPolicy) *v1alpha1.ApplicationInstallation {
	w.T.Helper()
	refused := "0.9.0-" + w.Namespace // other tests push theirs at the same time
	_, err := w.repo.Push(charts+"web", func(c *chart.Chart) {
		c.Metadata.Version = refused
		c.Templates = append(c.Templates, &chart.File{Name: "templates/refused.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name}\n")})
	})
	require.NoError(w.T, err)
	w.define(func(d *v1alpha1.ApplicationDefinitionSpec) {
		d.Versions = append(d.Versions, v1alpha1.ApplicationVersion{Version: "2.0.0", Template: &v1alpha1.ApplicationTemplate{Source: w.webSource(refused)}})
	})
	inst := w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.Values = values(w.T, replicas(2))
		s.BeforeUpgrade = &v1alpha1.BeforeUpgrade{Snapshot: snapshot, ApplicationSnapshotClassName: "plain"}
		s.DeployOptions = waiting(time.Hour, true)
		if target != w.Namespace {
			s.Namespace = &v1alpha1.TargetNamespace{Name: target, Create: true}
		}
	})
	hub.AwaitReady(w.World, inst)
	data := &v1alpha1.StatefulApplication{ObjectMeta: objectMeta("web-data"), Spec: v1alpha1.StatefulApplicationSpec{ApplicationName: "web"}}
	data.Namespace = target
	w.Create(data)
	return inst
}

// takenIn has the next snapshot in a namespace taken, and returns it.
func (w *world) takenIn(target string) *v1alpha1.ApplicationSnapshot {
	w.T.Helper()
	var taken *v1alpha1.ApplicationSnapshot
	require.True(w.T, w.Eventually(func() bool {
		list := &v1alpha1.ApplicationSnapshotList{}
		require.NoError(w.T, w.Client.List(w.T.Context(), list, client.InNamespace(target)))
		for i := range list.Items {
			if list.Items[i].Status.Phase == "" {
				taken = &list.Items[i]
			}
		}
		return taken != nil
	}), "a snapshot is to be taken")
	w.taken(taken, v1alpha1.SnapshotReady, "")
	return taken
}

func (w *world) rollbacks(target string) []v1alpha1.ApplicationRollback {
	w.T.Helper()
	list := &v1alpha1.ApplicationRollbackList{}
	require.NoError(w.T, w.Client.List(w.T.Context(), list, client.InNamespace(target)))
	return list.Items
}

// awaitRollback waits until there is an ApplicationRollback that goes back to a snapshot, and the status names it.
func (w *world) awaitRollback(inst *v1alpha1.ApplicationInstallation, of *v1alpha1.ApplicationSnapshot) *v1alpha1.ApplicationRollback {
	w.T.Helper()
	hub.Await(w.World, inst, "it goes back", func(i *v1alpha1.ApplicationInstallation) bool {
		u := i.Status.UpgradeRollback
		return u != nil && u.UID != "" && u.Snapshot.Name == of.Name
	})
	u, found := inst.Status.UpgradeRollback, &v1alpha1.ApplicationRollback{}
	require.True(w.T, w.ExistsIn(of.Namespace, found, u.Name))
	assert.Equal(w.T, u.UID, found.UID)
	assert.Equal(w.T, v1alpha1.UpgradeRollbackRestoring, u.Phase)
	assert.Equal(w.T, v1alpha1.SnapshotReference{Name: of.Name, UID: string(of.UID)}, *found.Spec.Source.SnapshotRef)
	assert.Equal(w.T, "web-data", found.Spec.ApplicationName)
	assert.Equal(w.T, "plain", found.Spec.SnapshotClassName)
	return found
}

// enter does what the role data does, which does not run here: an object of the application is held.
func (w *world) enter(r *v1alpha1.ApplicationRollback, phase v1alpha1.RollbackPhase) {
	w.T.Helper()
	r.Status.Held = []v1alpha1.HeldObject{{ObjectReference: v1alpha1.ObjectReference{Group: "apps", Kind: "Deployment", Namespace: r.Namespace, Name: "web"}}}
	if phase == v1alpha1.RollbackReverted {
		r.Status.Held, r.Status.Error = nil, &v1alpha1.DataError{Reason: v1alpha1.RollbackErrorReason, Message: "the driver is out of space"}
	}
	w.Enter(r, phase)
}

func (w *world) awaitUndone(inst *v1alpha1.ApplicationInstallation, phase v1alpha1.UpgradeRollbackPhase) *v1alpha1.ApplicationInstallation {
	w.T.Helper()
	return hub.Await(w.World, inst, string(phase), func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Status.UpgradeRollback != nil && i.Status.UpgradeRollback.Phase == phase && conditions.IsStalled(i)
	})
}

// C22, K47: an upgrade that fails goes back with its data to the snapshot from before it, whichever process carries out a
// step, and is not tried again before something changes. The namespace of the installation makes no difference.
func TestInstallation_goesBackWithItsData(t *testing.T) {
	for reason, suffix := range map[string]string{"in its own namespace": "", "in another namespace": "-target"} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			target := w.Namespace + suffix
			inst := w.atomically(target, v1alpha1.SnapshotRequire)
			w.move(inst, "2.0.0")
			snapshot := w.takenIn(target)
			rollback := w.awaitRollback(inst, snapshot)
			assert.EqualValues(t, 2, inst.Status.Release.Revision)
			assert.Equal(t, "failed", inst.Status.Release.Status, "nothing is undone before the data is back")

			engageAnew()
			w.enter(rollback, v1alpha1.RollbackRestoring)
			inst = hub.Await(w.World, inst, "it says how far it is", func(i *v1alpha1.ApplicationInstallation) bool { return i.Status.UpgradeRollback.Outcome == "Restoring" })
			assert.Contains(t, conditions.GetMessage(inst, v1alpha1.ReadyCondition), "waiting for ApplicationRollback "+target+"/"+rollback.Name)
			hub.Reconcile(w.World, inst)
			assert.EqualValues(t, 2, inst.Status.Release.Revision)

			engageAnew()
			w.enter(rollback, v1alpha1.RollbackCompleted)
			inst = w.awaitUndone(inst, v1alpha1.UpgradeRollbackCompleted)
			assert.EqualValues(t, 3, inst.Status.Release.Revision)
			assert.Equal(t, v1alpha1.UpgradeFailedReason, conditions.GetReason(inst, v1alpha1.ReadyCondition))
			message := conditions.GetMessage(inst, v1alpha1.ReadyCondition)
			assert.Contains(t, message, "; rolled back with its data to ApplicationSnapshot "+target+"/"+snapshot.Name+" by ApplicationRollback "+target+"/"+rollback.Name+"; change the installation")
			assert.Equal(t, []v1alpha1.InstallationOutcome{v1alpha1.InstallationRolledBack, v1alpha1.InstallationFailed, v1alpha1.InstallationDeployed}, outcomes(inst))

			engageAnew()
			w.settle(inst)
			assert.Equal(t, message, conditions.GetMessage(inst, v1alpha1.ReadyCondition), "a restart tries nothing again")
			assert.EqualValues(t, 3, inst.Status.Release.Revision)
			assert.Len(t, w.rollbacks(target), 1)

			w.move(inst, "1.1.0")
			w.takenIn(target)
			inst = w.awaitVersion(inst, "1.1.0")
			assert.Nil(t, inst.Status.UpgradeRollback)
			assert.Nil(t, inst.Status.UpgradeSnapshot, "what has been healthy once does not go back any more")
		})
	}
}

// K47: a user who asks for it has the same upgrade tried once more, from another snapshot; and what is wanted in
// the middle is installed at the end.
func TestInstallation_triesAgainWhatHasGoneBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inst := w.atomically(w.Namespace, v1alpha1.SnapshotRequire)
	w.move(inst, "2.0.0")
	first := w.awaitRollback(inst, w.takenIn(w.Namespace))
	w.enter(first, v1alpha1.RollbackCompleted)
	w.awaitUndone(inst, v1alpha1.UpgradeRollbackCompleted)

	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { metaAnnotate(i, v1alpha1.ReconcileAtAnnotation, "again") })
	second := w.awaitRollback(inst, w.takenIn(w.Namespace))
	assert.NotEqual(t, first.Name, second.Name)
	w.enter(second, v1alpha1.RollbackSwapping)
	w.move(inst, "1.1.0")
	hub.Await(w.World, inst, "the change is observed", func(i *v1alpha1.ApplicationInstallation) bool { return i.Status.ObservedGeneration == i.Generation })
	assert.EqualValues(t, 4, inst.Status.Release.Revision, "the rollback is not disturbed")
	w.enter(second, v1alpha1.RollbackCompleted)
	w.takenIn(w.Namespace)
	inst = w.awaitVersion(inst, "1.1.0")
	assert.EqualValues(t, 6, inst.Status.Release.Revision, "after it went back")
}

// C22: a rollback that cannot be done says so, and what is there stays, with the snapshot.
func TestInstallation_saysThatItsDataCannotGoBack(t *testing.T) {
	for reason, c := range map[string]struct {
		fail func(*world, *v1alpha1.ApplicationRollback)
		want string
	}{
		"it was reverted": {func(w *world, r *v1alpha1.ApplicationRollback) { w.enter(r, v1alpha1.RollbackReverted) }, "Reverted: the driver is out of space"},
		"it was deleted": {func(w *world, r *v1alpha1.ApplicationRollback) {
			require.NoError(w.T, w.Client.Delete(w.T.Context(), r))
		}, "it was deleted"},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			inst := w.atomically(w.Namespace, v1alpha1.SnapshotRequire)
			w.move(inst, "2.0.0")
			snapshot := w.takenIn(w.Namespace)
			c.fail(w, w.awaitRollback(inst, snapshot))
			inst = w.awaitUndone(inst, v1alpha1.UpgradeRollbackFailed)
			assert.Contains(t, conditions.GetMessage(inst, v1alpha1.ReadyCondition), ": "+c.want+"; ApplicationSnapshot "+w.Namespace+"/"+snapshot.Name+" has the state of before the upgrade")
			assert.EqualValues(t, 2, inst.Status.Release.Revision)
			assert.True(t, w.Exists(&v1alpha1.ApplicationSnapshot{}, snapshot.Name))
			engageAnew()
			w.settle(inst)
			assert.True(t, conditions.IsStalled(inst), "a restart tries nothing again")
			assert.EqualValues(t, 2, inst.Status.Release.Revision)
		})
	}
}

// K47: what is not healthy in time goes back with its data, too; and without a snapshot, the release alone does.
func TestInstallation_goesBackAfterItsTime(t *testing.T) {
	w := newWorld(t)
	inst := w.atomically(w.Namespace, v1alpha1.SnapshotRequire)
	w.noPods()
	w.move(inst, "1.1.0")
	snapshot := w.takenIn(w.Namespace)
	w.awaitAwaited(inst, 2)
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.DeployOptions = waiting(short, true) })
	rollback := w.awaitRollback(inst, snapshot)
	assert.Equal(t, "deployed", inst.Status.Release.Status)
	w.enter(rollback, v1alpha1.RollbackCompleted)
	inst = w.awaitUndone(inst, v1alpha1.UpgradeRollbackCompleted)
	assert.Equal(t, v1alpha1.NotHealthyReason, conditions.GetReason(inst, v1alpha1.ReadyCondition))
	assert.EqualValues(t, 3, inst.Status.Release.Revision)
	history := w.history()
	require.Len(t, history, 3)
	assert.Contains(t, history[1], "failed: ", "helm history says what became of it")
	assert.Equal(t, "deployed: Rollback to 1", history[2])
	assert.Equal(t, []v1alpha1.InstallationOutcome{v1alpha1.InstallationRolledBack, v1alpha1.InstallationFailed, v1alpha1.InstallationDeployed}, outcomes(inst))
}

// C22: nothing is uninstalled under a rollback, which would create it again.
func TestInstallation_isUninstalledAfterItsRollback(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		phase v1alpha1.RollbackPhase
		gone  bool // the rollback is deleted, because it has changed nothing
	}{
		"it has not begun":  {"", true},
		"it waits":          {v1alpha1.RollbackPending, true},
		"it takes snapshot": {v1alpha1.RollbackSaving, true},
		"it is at work":     {v1alpha1.RollbackApplying, false},
		"it goes back":      {v1alpha1.RollbackReverting, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			inst := w.atomically(w.Namespace, v1alpha1.SnapshotRequire)
			w.move(inst, "2.0.0")
			rollback := w.awaitRollback(inst, w.takenIn(w.Namespace))
			rollback.Finalizers = []string{v1alpha1.Finalizer} // of the role data, which does not run here
			require.NoError(t, w.Client.Update(t.Context(), rollback))
			if c.phase != "" {
				w.enter(rollback, c.phase)
			}
			require.NoError(t, w.Client.Delete(t.Context(), inst))
			assert.Equal(t, "waiting for ApplicationRollback "+w.Namespace+"/"+rollback.Name+" to end", hub.AwaitReason(w.World, inst, v1alpha1.DeletingReason))
			require.True(t, w.Exists(rollback, rollback.Name))
			assert.Equal(t, c.gone, !rollback.DeletionTimestamp.IsZero())
			assert.True(t, w.Exists(&appsv1.Deployment{}, "web"), "it is there until then")

			if c.gone {
				rollback.Finalizers = nil
				require.NoError(t, w.Client.Update(t.Context(), rollback))
			} else {
				w.enter(rollback, v1alpha1.RollbackReverted)
			}
			w.AwaitGone(inst, inst.Name)
			assert.False(t, w.Exists(&appsv1.Deployment{}, "web"))
		})
	}
}

func TestInstallation_goesBackWithoutDataWithoutASnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inst := w.atomically(w.Namespace, v1alpha1.SnapshotTry)
	w.move(inst, "2.0.0")
	w.taken(w.awaitSnapshot(), v1alpha1.SnapshotFailed, "the driver is out of space")
	assert.Contains(t, hub.AwaitReason(w.World, inst, v1alpha1.UpgradeFailedReason),
		"; and was rolled back without its data, because no snapshot was taken before the upgrade")
	assert.Nil(t, inst.Status.UpgradeRollback)
	assert.Empty(t, w.rollbacks(w.Namespace))
}
