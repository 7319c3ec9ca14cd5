package applicationinstallation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// C41: a process that is killed after an install, before that is noted, leaves it to the next one: that
// knows it by its record, installs nothing once more, and reports no tampering.
func TestInstallation_isKnownByItsRecordThoughItsReleaseIsNot(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	noted := w.unnoted(inst, func() {})

	hub.Await(w.World, inst, "it is not known", func(i *v1alpha1.ApplicationInstallation) bool {
		return i.Status.Release != nil && i.Status.Inventory != nil
	})
	hub.AwaitReady(w.World, inst)
	assert.Equal(t, noted.Status.Release, inst.Status.Release)
	assert.Equal(t, noted.Status.Inventory, inst.Status.Inventory)
	assert.Len(t, w.releases("web"), 1)
	told := &eventsv1.EventList{}
	require.NoError(t, w.Client.List(t.Context(), told, inNamespace(w)))
	for _, e := range told.Items {
		assert.NotEqual(t, v1alpha1.ReleaseAlteredReason, e.Reason, e.Note)
	}
}

// C41: nor is what it made accepted as it is, whatever is to become of drift: any user may have copied a
// record, and an action would have written all of it.
func TestInstallation_knownByItsRecordIsPutRight(t *testing.T) {
	for _, drift := range []v1alpha1.DriftDetection{v1alpha1.DriftDisabled, v1alpha1.DriftWarn} {
		t.Run(string(drift), func(t *testing.T) {
			w := newWorld(t)
			w.define(nil)
			inst := hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
				s.DeployOptions = &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{DriftDetection: drift}}
			}))
			w.unnoted(inst, func() {
				hub.Change(w.World, w.deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](7) })
			})
			require.True(t, w.Eventually(func() bool { return *w.deployment("web").Spec.Replicas == 2 }))
			assert.Len(t, w.releases("web"), 1)
		})
	}
}

// unnoted has the next process take over after an edit, and find no note of the release. It returns the
// installation with what had been noted.
func (w *world) unnoted(inst *v1alpha1.ApplicationInstallation, edit func()) *v1alpha1.ApplicationInstallation {
	w.T.Helper()
	ensure := func() { shared.process.Clusters.Ensure(local, "local", nil) }
	w.T.Cleanup(ensure) // other tests use the cluster, too
	shared.process.Clusters.Remove(local)
	noted := inst.DeepCopy()
	inst.Status.Release, inst.Status.Inventory = nil, nil
	require.NoError(w.T, w.Client.Status().Patch(w.T.Context(), inst, client.MergeFrom(noted)))
	w.AwaitSeen(shared.process, inst)
	edit()
	ensure()
	return noted
}
