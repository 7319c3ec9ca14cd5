package applicationinstallation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// C65: a rollback in the namespace that a chart was installed into from another one holds its objects one by one: it
// stops neither the correction of others, nor an upgrade. So does a snapshot that scales them to zero.
func TestInstallation_leavesObjectsHeldInItsTargetNamespace(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	target := &corev1.Namespace{ObjectMeta: objectMeta(w.Namespace + "-target")}
	require.NoError(t, w.Client.Create(t.Context(), target))
	inst := hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.Namespace, s.Values = &v1alpha1.TargetNamespace{Name: target.Name}, values(t, replicas(2))
	}))
	there := *w.World
	there.Namespace = target.Name
	held := func(group, kind string) v1alpha1.HeldObject {
		return v1alpha1.HeldObject{ObjectReference: v1alpha1.ObjectReference{Group: group, Kind: kind, Name: "web"}}
	}
	rollback := there.Rollback("back", v1alpha1.RollbackScalingDown, held("apps", "Deployment"), held("", "Service"))

	service, deployment, settings := &corev1.Service{}, &appsv1.Deployment{}, &corev1.ConfigMap{}
	require.True(t, there.Exists(service, "web"))
	hub.Change(&there, service, func(s *corev1.Service) { hub.MarkHeld(s, "back") })
	scale := func(n int32, by string) {
		t.Helper()
		require.True(t, there.Exists(deployment, "web"))
		hub.Change(&there, deployment, func(d *appsv1.Deployment) {
			hub.MarkHeld(d, by)
			d.Spec.Replicas = ptr.To(n)
		})
	}
	corrected := func() { // which everything else is that was seen to be wrong by then
		t.Helper()
		require.True(t, there.Exists(settings, "web"))
		wanted := settings.DeepCopy().Data
		hub.Change(&there, settings, func(cm *corev1.ConfigMap) { cm.Data = map[string]string{} })
		require.True(t, there.Eventually(func() bool { return there.Exists(settings, "web") && assert.ObjectsAreEqual(wanted, settings.Data) }))
		hub.Reconcile(w.World, inst)
	}
	isScaled := func(n int32) bool {
		return there.Exists(deployment, "web") && ptr.Deref(deployment.Spec.Replicas, 0) == n
	}
	scale(0, "back")
	corrected()
	assert.True(t, isScaled(0), "the rollback is at work")
	by := "ApplicationRollback " + target.Name + "/back holds Deployment " + target.Name + "/web, Service " + target.Name + "/web"
	inst = w.awaitHeld(inst, by)
	assert.Equal(t, v1alpha1.RolledBackReason, conditions.GetReason(inst, v1alpha1.HeldCondition))
	hub.Await(w.World, inst, "Ready does not say it", func(i *v1alpha1.ApplicationInstallation) bool {
		return strings.Contains(conditions.GetMessage(i, v1alpha1.ReadyCondition), by)
	})
	since := inst.Status.Held[0].Since

	there.Enter(rollback, v1alpha1.RollbackCompleted)
	scale(5, "back")
	engageAnew()
	corrected()
	assert.True(t, isScaled(5), "it is as the rollback has put it")
	inst = w.awaitHeld(inst, by)
	assert.Equal(t, since, inst.Status.Held[0].Since, "a restart keeps the hold")
	require.NoError(t, w.Client.Delete(t.Context(), deployment))
	corrected()
	assert.False(t, there.Exists(deployment, "web"), "nor is it created")

	require.True(t, w.Eventually(func() bool { return time.Now().Truncate(time.Second).After(rollback.CreationTimestamp.Time) }))
	w.scale(inst, 4)
	inst = hub.Await(w.World, inst, "the upgrade", func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Status.Release.Revision == 2 && conditions.IsReady(i)
	})
	require.True(t, isScaled(4), "something else is wanted")
	hub.Await(w.World, inst, "it is not held", func(i *v1alpha1.ApplicationInstallation) bool { return !isHeld(i) && len(i.Status.Held) == 0 })
	scale(7, "back")
	assert.True(t, there.Eventually(func() bool { return isScaled(4) }), "a newer revision is corrected")

	snapshot := &v1alpha1.ApplicationSnapshot{ObjectMeta: objectMeta("cold"), Spec: v1alpha1.ApplicationSnapshotSpec{
		SnapshotClassName: "any", Source: v1alpha1.SnapshotSource{Type: v1alpha1.SnapshotSourceApplication, ApplicationName: "web"},
	}}
	there.Create(snapshot)
	hold := func(held ...v1alpha1.ObjectReference) {
		before := snapshot.DeepCopy()
		snapshot.Status.Held = held
		require.NoError(t, w.Client.Status().Patch(t.Context(), snapshot, client.MergeFrom(before)))
	}
	hold(v1alpha1.ObjectReference{Group: "apps", Kind: "Deployment", Namespace: target.Name, Name: "web"})
	scale(0, "snapshot:cold")
	corrected()
	assert.True(t, isScaled(0), "the snapshot has scaled it to zero")
	inst = w.awaitHeld(inst, "ApplicationSnapshot "+target.Name+"/cold holds Deployment "+target.Name+"/web: left scaled to zero")
	assert.Equal(t, v1alpha1.ScaledToZeroReason, conditions.GetReason(inst, v1alpha1.HeldCondition))
	hold()
	scale(0, "")
	assert.True(t, there.Eventually(func() bool { return isScaled(4) }), "no longer than the snapshot says")
	hub.Await(w.World, inst, "it is not held", func(i *v1alpha1.ApplicationInstallation) bool { return !isHeld(i) })
}

// awaitHeld waits until an installation says who holds its objects.
func (w *world) awaitHeld(inst *v1alpha1.ApplicationInstallation, by string) *v1alpha1.ApplicationInstallation {
	w.T.Helper()
	return hub.Await(w.World, inst, "not held: "+by, func(i *v1alpha1.ApplicationInstallation) bool {
		return strings.HasPrefix(conditions.GetMessage(i, v1alpha1.HeldCondition), by)
	})
}
