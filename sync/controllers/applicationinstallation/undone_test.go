package applicationinstallation_test

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// K47: a failed install that was undone is tried again after a back-off, although the end of its
// objects is a change by others to what was installed before.
func TestInstallation_thatWasUndoneIsNotInstalledAgainAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.Values = values(t, map[string]any{"hook": map[string]any{"enabled": false}})
		s.DeployOptions = waiting(hub.Limit, true)
	}))
	w.Create(&corev1.ResourceQuota{ObjectMeta: objectMeta("deployments"), Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/deployments.apps": resource.MustParse("0")},
	}})
	w.awaitNoDeployments()
	for _, secret := range w.releases("web") {
		require.NoError(t, w.Client.Delete(t.Context(), &secret))
	}
	require.NoError(t, w.Client.Delete(t.Context(), w.deployment("web")))
	hub.Await(w.World, inst, "the release is known to be gone", func(i *v1alpha1.ApplicationInstallation) bool {
		return conditions.GetReason(i, v1alpha1.ReadyCondition) == v1alpha1.InstallFailedReason && i.Status.Release == nil
	})
	assert.Contains(t, conditions.GetMessage(inst, v1alpha1.ReadyCondition), "and was uninstalled")
	hub.Await(w.World, inst, "failures are counted, and waited out", func(i *v1alpha1.ApplicationInstallation) bool { return i.Status.Failures > 1 })
}
