package applicationinstallation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// A cluster that is engaged anew is driven as before, also where its cache is another's: the
// hub's own outlives every engagement.
func TestInstallation_clusterIsEngagedAnew(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	for range 2 {
		engageAnew()
		hub.Reconcile(w.World, inst)
	}
	assert.EqualValues(t, 1, inst.Status.Release.Revision, "nothing is installed anew")

	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "1.1.0" })
	hub.AwaitReady(w.World, inst)
	assert.EqualValues(t, 2, inst.Status.Release.Revision)
}
