package applicationinstallation_test

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// What was never installed is not compared with the cluster, whatever the interval: there is
// nothing to compare with, and nothing is said of it but why it cannot be fetched.
func TestInstallation_thatWasNeverInstalledIsNotCompared(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		define func(*world)
		reason string
	}{
		"chart": {func(w *world) {
			w.define(func(d *v1alpha1.ApplicationDefinitionSpec) { d.Versions[0].Template.Source.Helm.ChartVersion = "9.9.9" })
		}, v1alpha1.ChartNotFoundReason},
		"kustomization": {func(w *world) { w.kustomizations(map[string]string{"elsewhere/web.yaml": ""}) }, v1alpha1.PathNotFoundReason},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.define(w)
			inst := w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
				s.ReconciliationInterval = metav1.Duration{Duration: time.Second}
			})
			hub.AwaitReason(w.World, inst, tc.reason)
			for began := time.Now(); time.Since(began) < 2*time.Second; {
				hub.Reconcile(w.World, inst)
				require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(inst), inst))
				require.Equal(t, tc.reason, conditions.GetReason(inst, v1alpha1.ReadyCondition))
				require.False(t, conditions.Has(inst, v1alpha1.InstalledCondition))
				require.NotContains(t, conditions.GetMessage(inst, v1alpha1.ReadyCondition), "what is installed")
			}
		})
	}
}
