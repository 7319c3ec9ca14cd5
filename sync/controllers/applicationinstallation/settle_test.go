package applicationinstallation_test

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// What is healthy almost at once is told once, so what was installed gets a moment, in which it is
// told as being installed. This is no measurement: however slow a machine is, no status comes earlier.
func TestInstallation_givesWhatItInstalledAMoment(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	w.noPods()
	began := time.Now()
	inst := w.install(func(spec *v1alpha1.ApplicationInstallationSpec) {
		spec.DeployOptions = &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{DisableHooks: true}} // they need Pods, too
	})
	hub.Await(w.World, inst, "the install is not told", func(i *v1alpha1.ApplicationInstallation) bool { return i.Status.Release != nil })
	assert.GreaterOrEqual(t, time.Since(began), 2*time.Second)
	assert.Equal(t, v1alpha1.ProgressingReason, conditions.GetReason(inst, v1alpha1.ReadyCondition), "it is told, although it is not healthy")
}
