package applicationinstallation_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// K3, C53
func TestInstallation_driftIsPutRightWithoutARevision(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))

	require.NoError(t, w.Client.Delete(t.Context(), w.deployment("web")))
	w.AwaitThere(&corev1.ConfigMap{}, "web")
	require.True(t, w.Eventually(func() bool {
		d := w.peekDeployment("web")
		return d != nil && d.DeletionTimestamp == nil
	}), "what was deleted is back")

	hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) {
		d.Spec.Replicas = ptr.To[int32](7)
		metaAnnotate(d, "theirs", "kept")
	})
	require.True(t, w.Eventually(func() bool { return *w.deployment("web").Spec.Replicas == 2 }), "what was edited is corrected")
	assert.Equal(t, "kept", w.deployment("web").Annotations["theirs"], "what others add is no drift")

	hub.AwaitReady(w.World, inst)
	assert.EqualValues(t, 1, inst.Status.Release.Revision)
	w.awaitCorrected("Deployment.apps " + w.Namespace + "/web was missing")
}

// An event says which fields were corrected, and of which object.
func TestInstallation_driftThatWasPutRightIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	hub.AwaitReady(w.World, w.install(nil))
	hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
	w.awaitCorrected("Deployment.apps " + w.Namespace + "/web differed in spec.replicas")
}

// awaitCorrected waits for the event that says what of the installation was corrected.
func (w *world) awaitCorrected(note string) {
	w.T.Helper()
	told := &eventsv1.EventList{}
	require.True(w.T, w.Eventually(func() bool {
		require.NoError(w.T, w.Client.List(w.T.Context(), told, client.InNamespace(w.Namespace)))
		return slices.ContainsFunc(told.Items, func(e eventsv1.Event) bool {
			return e.Reason == v1alpha1.DriftCorrectedReason && e.Regarding.Kind == v1alpha1.ApplicationInstallationKind && e.Note == note
		})
	}), "no event says that %s", note)
}

func TestInstallation_driftIsOnlyReportedWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.DeployOptions = &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{DriftDetection: v1alpha1.DriftWarn}}
	}))
	hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
	hub.Await(w.World, inst, "drift is reported", func(i *v1alpha1.ApplicationInstallation) bool {
		return conditions.IsTrue(i, v1alpha1.DriftedCondition)
	})
	assert.Equal(t, "Deployment.apps "+w.Namespace+"/web differed in spec.replicas", conditions.GetMessage(inst, v1alpha1.DriftedCondition))
	assert.EqualValues(t, 7, *w.deployment("web").Spec.Replicas, "and left alone")
}

// disengaged edits while no watch runs: no process is engaged in the cluster.
func (w *world) disengaged(edit func()) {
	w.T.Helper()
	shared.process.Clusters.Remove(local)
	edit()
	engageAnew()
}

// K3, C53: what was edited while no watch ran is corrected when one runs again.
func TestInstallation_driftWhileNobodyWatchedIsPutRight(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	hub.AwaitReady(w.World, w.install(nil))
	w.disengaged(func() {
		hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
	})
	require.True(t, w.Eventually(func() bool { return *w.deployment("web").Spec.Replicas == 2 }))
	w.awaitCorrected("Deployment.apps " + w.Namespace + "/web differed in spec.replicas")
}

// What was reported is reported on, also by who did not see it come.
func TestInstallation_driftWhileNobodyWatchedIsReported(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.DeployOptions = &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{DriftDetection: v1alpha1.DriftWarn}}
	}))
	w.disengaged(func() {
		hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
	})
	hub.Reconcile(w.World, inst)
	assert.True(t, conditions.IsTrue(inst, v1alpha1.DriftedCondition))
}

// K3: what is edited while something else is corrected is corrected as well.
func TestInstallation_driftDuringACorrectionIsPutRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	hub.AwaitReady(w.World, w.install(nil))
	held := w.admission("web")
	require.NoError(t, w.Client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "web"}}))
	env.Receive(t, held.asked, "the ConfigMap is not made")
	hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
	held.release()
	require.True(t, w.Eventually(func() bool { return *w.deployment("web").Spec.Replicas == 2 }))
	assert.True(t, w.Exists(&corev1.ConfigMap{}, "web"))
}

// K3: what could not be corrected is not forgotten when something else is.
func TestInstallation_driftThatCouldNotBePutRightIsStillSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	quota := &corev1.ResourceQuota{ObjectMeta: objectMeta("deployments"), Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")},
	}}
	w.Create(quota)
	w.awaitNoDeployments()
	require.NoError(t, w.Client.Delete(t.Context(), w.deployment("web")))
	refused := func(i *v1alpha1.ApplicationInstallation) bool {
		return strings.Contains(conditions.GetMessage(i, v1alpha1.ReadyCondition), "exceeded quota")
	}
	hub.Await(w.World, inst, "the Deployment is refused", refused)
	for range 2 {
		require.NoError(t, w.Client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "web"}}))
		w.AwaitThere(&corev1.ConfigMap{}, "web")
	}
	hub.Reconcile(w.World, inst)
	assert.True(t, refused(inst), conditions.GetMessage(inst, v1alpha1.ReadyCondition))

	require.NoError(t, w.Client.Delete(t.Context(), quota))
	require.True(t, w.Eventually(func() bool { return w.peekDeployment("web") != nil }))
	hub.AwaitReady(w.World, inst)
}

func TestInstallation_releaseDeletedByHandIsInstalledAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	hub.AwaitReady(w.World, w.install(nil))
	for _, secret := range w.releases("web") {
		require.NoError(t, w.Client.Delete(t.Context(), &secret))
	}
	require.NoError(t, w.Client.Delete(t.Context(), w.deployment("web")))
	require.True(t, w.Eventually(func() bool { return w.peekDeployment("web") != nil && len(w.releases("web")) == 1 }))
}

func TestInstallation_costsNothingWhenNothingChanged(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	mark, err := w.Cluster.AuditMark(t.Context())
	require.NoError(t, err)
	hub.Reconcile(w.World, inst)

	got, err := w.Cluster.Requests(t.Context(), mark, env.Calls, env.Accepted, func(r env.Request) bool {
		return strings.Contains(r.User, hub.Identity) && r.Namespace == w.Namespace && r.Resource != "events"
	})
	require.NoError(t, err)
	require.Len(t, got, 1, "one status write, and nothing else: %+v", got)
	assert.Equal(t, "status", got[0].Subresource)
}
