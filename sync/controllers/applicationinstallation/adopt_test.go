package applicationinstallation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// C41: a process that is killed after an install, before that is noted, leaves it to the next one: that
// knows it by its record, installs nothing once more, and accuses nobody.
func TestInstallation_isKnownByItsRecordThoughItsReleaseIsNot(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	ensure := func() { shared.process.Clusters.Ensure(local, "local", nil) }
	t.Cleanup(ensure) // other tests use the cluster, too
	shared.process.Clusters.Remove(local)
	noted := inst.DeepCopy()
	inst.Status.Release, inst.Status.Inventory = nil, nil
	require.NoError(t, w.Client.Status().Patch(t.Context(), inst, client.MergeFrom(noted)))
	w.AwaitSeen(shared.process, inst)
	ensure()

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
