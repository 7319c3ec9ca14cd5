package webhooks_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"waybill.dev/waybill/api/v1alpha1"
)

// decided returns how many decisions of that kind were counted, and how many were timed.
func decided(t *testing.T, kind, operation, decision string) (count float64, timed uint64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["kind"] != kind || labels["operation"] != operation {
				continue
			}
			switch f.GetName() {
			case "waybill_admission_decisions_total":
				if labels["decision"] == decision {
					count = m.GetCounter().GetValue()
				}
			case "waybill_admission_duration_seconds":
				timed = m.GetHistogram().GetSampleCount()
			}
		}
	}
	return count, timed
}

// Every decision is counted and timed, whatever becomes of it.
func TestMetrics_countDecisions(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ns := c.Namespace(t)
	allowed, timed := decided(t, "KubernetesCluster", "CREATE", "allowed")
	refused, _ := decided(t, "KubernetesCluster", "CREATE", "refused")

	require.NoError(t, admin.Create(t.Context(), newCluster(ns, "berlin"), client.DryRunAll))
	bad := newCluster(ns, "berlin")
	bad.Spec.KubeconfigSecretRef.Key = "a/b"
	require.Error(t, admin.Create(t.Context(), bad, client.DryRunAll))
	require.Error(t, c.with(t, ns, nil).Create(t.Context(), newCluster(ns, "berlin"), client.DryRunAll))

	nowAllowed, nowTimed := decided(t, "KubernetesCluster", "CREATE", "allowed")
	nowRefused, _ := decided(t, "KubernetesCluster", "CREATE", "refused")
	assert.Equal(t, allowed+1, nowAllowed)
	assert.Equal(t, refused+2, nowRefused)
	assert.Equal(t, timed+3, nowTimed)
}

// What a user wrote that cannot be decoded is the user's fault, not that of something that does not
// answer. It is left to the schema, which comes next and refuses it.
func TestMetrics_countWhatCannotBeDecodedAsNoFailure(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"applicationRef": map[string]any{"name": "web"}, "reconciliationInterval": "1d",
	}}}
	obj.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationInstallationKind))
	obj.SetNamespace(c.Namespace(t))
	obj.SetName("web")
	allowed, _ := decided(t, v1alpha1.ApplicationInstallationKind, "DEFAULT", "allowed")
	failed, _ := decided(t, v1alpha1.ApplicationInstallationKind, "DEFAULT", "failed")

	require.Error(t, admin.Create(t.Context(), obj, client.DryRunAll))

	nowAllowed, _ := decided(t, v1alpha1.ApplicationInstallationKind, "DEFAULT", "allowed")
	nowFailed, _ := decided(t, v1alpha1.ApplicationInstallationKind, "DEFAULT", "failed")
	assert.Equal(t, allowed+1, nowAllowed)
	assert.Equal(t, failed, nowFailed)
}

// injections returns how many objects were looked at, whatever became of them.
func injections(t *testing.T) (count float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != "waybill_injection_outcomes_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			count += m.GetCounter().GetValue()
		}
	}
	return count
}
