package applicationinstallation_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// guarded is an installation `web` of 1.0.0 that has data, and takes snapshots before upgrades.
func (w *world) guarded(snapshot v1alpha1.SnapshotPolicy) *v1alpha1.ApplicationInstallation {
	w.T.Helper()
	w.define(nil)
	inst := w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.Values = values(w.T, replicas(2))
		s.BeforeUpgrade = &v1alpha1.BeforeUpgrade{Snapshot: snapshot, ApplicationSnapshotClassName: "plain"}
	})
	return hub.AwaitReady(w.World, inst)
}

// hasData says that the application `web` has data.
func (w *world) hasData() {
	w.T.Helper()
	w.Create(&v1alpha1.StatefulApplication{ObjectMeta: objectMeta("web-data"), Spec: v1alpha1.StatefulApplicationSpec{ApplicationName: "web"}})
}

func (w *world) snapshots() []v1alpha1.ApplicationSnapshot {
	w.T.Helper()
	list := &v1alpha1.ApplicationSnapshotList{}
	require.NoError(w.T, w.Client.List(w.T.Context(), list, inNamespace(w)))
	return list.Items
}

// awaitSnapshot waits for the one snapshot that was not taken yet.
func (w *world) awaitSnapshot() *v1alpha1.ApplicationSnapshot {
	w.T.Helper()
	var found *v1alpha1.ApplicationSnapshot
	require.True(w.T, w.Eventually(func() bool {
		for _, s := range w.snapshots() {
			if s.Status.Phase == "" && s.DeletionTimestamp.IsZero() {
				found = &s
				return true
			}
		}
		return false
	}), "a snapshot is to be taken")
	return found
}

// taken does what the role data does, which does not run here.
func (w *world) taken(s *v1alpha1.ApplicationSnapshot, phase v1alpha1.SnapshotPhase, why string) {
	w.T.Helper()
	before := s.DeepCopy()
	if s.Status.Phase = phase; why != "" {
		s.Status.Error = &v1alpha1.DataError{Reason: v1alpha1.VolumeSnapshotFailedReason, Message: why}
	}
	require.NoError(w.T, w.Client.Status().Patch(w.T.Context(), s, client.MergeFrom(before)))
}

// told returns the notes of the events of a reason.
func (w *world) told(reason string) string {
	w.T.Helper()
	list := &eventsv1.EventList{}
	require.NoError(w.T, w.Client.List(w.T.Context(), list, inNamespace(w)))
	var notes []string
	for _, e := range list.Items {
		if e.Reason == reason {
			notes = append(notes, e.Note)
		}
	}
	return strings.Join(notes, "\n")
}

// S29, S36: an upgrade waits for the snapshot that is taken before, and each upgrade takes one, of which three are kept.
func TestInstallation_takesASnapshotBeforeAnUpgrade(t *testing.T) {
	w := newWorld(t)
	w.hasData()
	inst := w.guarded(v1alpha1.SnapshotRequire)
	assert.Empty(t, w.snapshots(), "an install takes none")

	w.move(inst, "1.1.0")
	snapshot := w.awaitSnapshot()
	assert.Equal(t, v1alpha1.SnapshotSource{Type: v1alpha1.SnapshotSourceApplication, ApplicationName: "web-data"}, snapshot.Spec.Source)
	assert.Equal(t, "plain", snapshot.Spec.SnapshotClassName)
	assert.Equal(t, map[string]string{"installation": w.Namespace + "/web", "from": "1.0.0", "to": "1.1.0"}, snapshot.Spec.Tags)
	inst = w.awaitWait(inst, v1alpha1.SnapshotPendingReason, "waiting for ApplicationSnapshot "+w.Namespace+"/"+snapshot.Name+" to be ready before the upgrade to 1.1.0")
	assert.EqualValues(t, 1, inst.Status.Release.Revision)
	engageAnew()
	w.taken(snapshot, v1alpha1.SnapshotCutting, "")
	w.taken(snapshot, v1alpha1.SnapshotReady, "")
	w.awaitVersion(inst, "1.1.0")
	require.Len(t, w.snapshots(), 1, "a restart takes no second one")
	require.True(t, w.Eventually(func() bool {
		return strings.Contains(w.told(v1alpha1.SnapshotTakenReason), "ApplicationSnapshot "+w.Namespace+"/"+snapshot.Name+" was taken before the upgrade to 1.1.0")
	}))

	foreign := snapshot.DeepCopy()
	foreign.ObjectMeta = metav1.ObjectMeta{Name: "by-hand"}
	w.Create(foreign)
	w.taken(foreign, v1alpha1.SnapshotReady, "")
	for _, n := range []int{3, 4, 3, 4} { // an upgrade that was made before as well
		hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.Values = values(t, replicas(n)) })
		w.taken(w.awaitSnapshot(), v1alpha1.SnapshotReady, "")
		hub.AwaitReady(w.World, inst)
	}
	names := []string{}
	for _, s := range w.snapshots() {
		names = append(names, s.Name)
	}
	assert.Len(t, names, 4, "three, and the one that a user has taken")
	assert.Contains(t, names, "by-hand")

	engageAnew()
	inst = hub.Reconcile(w.World, inst)
	assert.True(t, conditions.IsReady(inst))
	assert.Len(t, w.snapshots(), 4, "nothing is upgraded, and no snapshot taken")
}

// S29: a required snapshot that fails stops the upgrade, until a user requests another one.
func TestInstallation_isNotUpgradedWithoutARequiredSnapshot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inst := w.guarded(v1alpha1.SnapshotRequire)
	w.move(inst, "1.1.0")
	assert.Equal(t, "not upgraded to 1.1.0: no StatefulApplication says that Application "+w.Namespace+"/web has data: create one with spec.applicationName web",
		hub.AwaitReason(w.World, inst, v1alpha1.SnapshotNotTakenReason))
	w.hasData()
	first := w.awaitSnapshot()
	w.taken(first, v1alpha1.SnapshotFailed, "the driver is out of space")
	inst = hub.Await(w.World, inst, "it is stalled", func(i *v1alpha1.ApplicationInstallation) bool { return conditions.IsStalled(i) })
	assert.Contains(t, conditions.GetMessage(inst, v1alpha1.ReadyCondition), "not upgraded to 1.1.0: ApplicationSnapshot "+w.Namespace+"/"+first.Name+": the driver is out of space")
	assert.Equal(t, "1.0.0", inst.Status.Application.Version)
	assert.True(t, isReplicas(w, 2))

	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { metaAnnotate(i, v1alpha1.ReconcileAtAnnotation, "now") })
	second := w.awaitSnapshot()
	assert.NotEqual(t, first.UID, second.UID)
	w.taken(second, v1alpha1.SnapshotReady, "")
	w.awaitVersion(inst, "1.1.0")
}

// A snapshot that is only tried stops nothing, and users see that there is none.
func TestInstallation_isUpgradedWithoutASnapshotThatFails(t *testing.T) {
	t.Parallel()
	for reason, c := range map[string]struct {
		data bool
		want string
	}{
		"there is no data":        {want: "upgraded to 1.1.0 without a snapshot: no StatefulApplication says"},
		"the snapshot has failed": {data: true, want: "the driver is out of space"},
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t)
			inst := w.guarded(v1alpha1.SnapshotTry)
			if c.data {
				w.hasData()
			}
			w.move(inst, "1.1.0")
			if c.data {
				w.taken(w.awaitSnapshot(), v1alpha1.SnapshotFailed, "the driver is out of space")
			}
			w.awaitVersion(inst, "1.1.0")
			require.True(t, w.Eventually(func() bool { return strings.Contains(w.told(v1alpha1.SnapshotNotTakenReason), c.want) }), w.told(v1alpha1.SnapshotNotTakenReason))
		})
	}
}

// The version of the definition asks for a snapshot, and the default class takes it; an installation overrides that.
func TestInstallation_takesSnapshotsAsItsVersionSays(t *testing.T) {
	w := newWorld(t)
	w.hasData()
	definition := w.define(func(d *v1alpha1.ApplicationDefinitionSpec) {
		d.Versions[1].BeforeUpgrade = &v1alpha1.BeforeUpgrade{Snapshot: v1alpha1.SnapshotRequire}
	})
	inst := hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) { s.Values = values(t, replicas(2)) }))
	w.move(inst, "1.1.0")
	assert.Contains(t, hub.AwaitReason(w.World, inst, v1alpha1.SnapshotNotTakenReason), "no ApplicationSnapshotClass has annotation "+v1alpha1.DefaultClassAnnotation)
	class := &v1alpha1.ApplicationSnapshotClass{ObjectMeta: objectMeta(definition.Name), Snapshotter: "others.example.com"}
	metaAnnotate(class, v1alpha1.DefaultClassAnnotation, "true")
	require.NoError(t, w.Client.Create(t.Context(), class))
	t.Cleanup(func() { _ = w.Client.Delete(t.Context(), class) })
	assert.Equal(t, class.Name, w.awaitSnapshot().Spec.SnapshotClassName)
	require.NoError(t, w.Client.Delete(t.Context(), class))

	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) {
		i.Spec.BeforeUpgrade = &v1alpha1.BeforeUpgrade{Snapshot: v1alpha1.SnapshotNever}
	})
	w.awaitVersion(inst, "1.1.0")
}
