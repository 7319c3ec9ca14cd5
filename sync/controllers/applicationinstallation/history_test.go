package applicationinstallation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

func outcomes(inst *v1alpha1.ApplicationInstallation) []v1alpha1.InstallationOutcome {
	var all []v1alpha1.InstallationOutcome
	for _, r := range inst.Status.History {
		all = append(all, r.Outcome)
	}
	return all
}

// K46, K68: how each install and upgrade ended is in the status; what changes nothing adds nothing,
// whether or not Waybill was restarted in between.
func TestInstallation_history(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.Values = values(t, map[string]any{"hook": map[string]any{"enabled": false}})
	}))
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "1.1.0" })
	hub.AwaitReady(w.World, inst)
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) {
		i.Spec.Values = values(t, map[string]any{"replicas": "many"})
	})
	hub.AwaitReason(w.World, inst, v1alpha1.InvalidValuesReason)

	require.Equal(t, []v1alpha1.InstallationOutcome{v1alpha1.InstallationFailed, v1alpha1.InstallationDeployed, v1alpha1.InstallationDeployed}, outcomes(inst))
	failed, upgraded, installed := inst.Status.History[0], inst.Status.History[1], inst.Status.History[2]
	assert.Zero(t, failed.Revision, "values that the schema of the chart refuses make none")
	assert.Contains(t, failed.Message, "replicas")
	assert.NotEqual(t, upgraded.ValuesDigest, failed.ValuesDigest)
	assert.EqualValues(t, 2, upgraded.Revision)
	assert.EqualValues(t, 1, installed.Revision)
	assert.Equal(t, "1.1.0 1.1.0", upgraded.Version+" "+upgraded.SourceRevision)
	assert.Equal(t, "1.0.0 1.0.0", installed.Version+" "+installed.SourceRevision)
	assert.Equal(t, installed.ValuesDigest, upgraded.ValuesDigest)
	assert.NotEmpty(t, installed.ValuesDigest)
	assert.False(t, upgraded.FinishedAt.Before(&installed.FinishedAt))

	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) {
		metaAnnotate(i, v1alpha1.ReconcileAtAnnotation, "again")
	})
	hub.Await(w.World, inst, "it was tried again", func(i *v1alpha1.ApplicationInstallation) bool { return i.Status.LastHandledReconcileAt == "again" })
	assert.Len(t, inst.Status.History, 3, "what fails again is no further entry")

	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) {
		i.Spec.Values = values(t, map[string]any{"hook": map[string]any{"enabled": false}})
	})
	hub.AwaitReady(w.World, inst)
	before := inst.Status.History
	engageAnew()
	w.settle(inst)
	hub.AwaitReady(w.World, inst)
	assert.Equal(t, before, inst.Status.History, "nothing was installed")
}
