package applicationinstallation_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// account is a ServiceAccount in a namespace of its own, so that the Application does not list it, and
// a hook that runs after it was made.
const account = `
{{- if .Values.elsewhere }}
apiVersion: v1
kind: ServiceAccount
metadata: {name: made, namespace: {{ .Values.elsewhere }}}
automountServiceAccountToken: false
{{- end }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: hook, annotations: {helm.sh/hook: post-upgrade}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
`

// K3, C53: what others do to an object while the hooks that follow it run is corrected when they have
// ended, although it is watched only then, and no event, interval or other object says so any more.
func TestInstallation_driftDuringAHookIsPutRight(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		others func(*world, *corev1.ServiceAccount)
		note   string
	}{
		"deleted": {func(w *world, made *corev1.ServiceAccount) {
			require.NoError(w.T, w.Client.Delete(w.T.Context(), made))
		}, "was missing"},
		"edited": {func(w *world, made *corev1.ServiceAccount) {
			hub.Change(w.World, made, func(a *corev1.ServiceAccount) { a.AutomountServiceAccountToken = ptr.To(true) })
		}, "differed in automountServiceAccountToken"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, err := w.repo.Push(charts+"web", func(c *chart.Chart) {
				c.Metadata.Version, c.Schema = "0.9.0-during", nil
				c.Templates = []*chart.File{{Name: "templates/all.yaml", Data: []byte(account)}}
			})
			require.NoError(t, err)
			w.define(func(d *v1alpha1.ApplicationDefinitionSpec) {
				d.Versions[0].Template.Source = w.webSource("0.9.0-during")
			})
			inst := hub.AwaitReady(w.World, w.install(nil))

			held, elsewhere, made := w.admission("hook"), w.Cluster.Namespace(t), &corev1.ServiceAccount{}
			hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) {
				i.Spec.Values = values(t, map[string]any{"elsewhere": elsewhere})
			})
			env.Receive(t, held.asked, "the hook does not run")
			require.True(t, w.ExistsIn(elsewhere, made, "made"))
			tc.others(w, made)
			held.release()
			require.True(t, w.Eventually(func() bool {
				return w.ExistsIn(elsewhere, made, "made") && !ptr.Deref(made.AutomountServiceAccountToken, true)
			}), "it is as the chart says again")
			w.awaitCorrected("ServiceAccount " + elsewhere + "/made " + tc.note)
			hub.AwaitReady(w.World, inst)
		})
	}
}
