package integration_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
)

// nested is values with one at that path, whose parts are separated by dots.
func nested(path string, value any) map[string]any {
	parts := strings.Split(path, ".")
	for i := len(parts) - 1; i >= 0; i-- {
		value = map[string]any{parts[i]: value}
	}
	return value.(map[string]any)
}

// A program does not start, or not for long, with what its values say: Helm says so instead.
func TestChart_refusesWhatWouldCrashLoop(t *testing.T) {
	for reason, tc := range map[string]struct {
		path  string
		value any
		says  string
	}{
		"--render-memory is refused":                 {"sync.renderMemory", "1Mi", "sync.renderMemory: 1Mi is less than 64Mi"},
		"two of them kill the container":             {"sync.renderMemory", "1Gi", "sync.resources.limits.memory: 1536Mi has no room for rendering two charts or kustomizations within sync.renderMemory (1Gi) and 256Mi"},
		"and leave nothing for the process":          {"sync.renderMemory", "700Mi", "has no room for rendering two charts"},
		"a thousandth of a byte":                     {"sync.renderMemory", "400000m", "at '/sync/renderMemory'"},
		"an empty one":                               {"sync.renderMemory", "", "at '/sync/renderMemory'"},
		"the Pod is evicted":                         {"sync.cacheSize", "1Ki", "sync.cacheSize: 1Ki is less than 256Mi"},
		"--cache-size must be positive":              {"sync.cacheSize", "0", "sync.cacheSize: 0 is less than 256Mi"},
		"no quantity":                                {"sync.cacheSize", "10 GB", "at '/sync/cacheSize'"},
		"--cluster-selector is refused":              {"sync.clusterSelector", "a b c", "at '/sync/clusterSelector'"},
		"a limit of lots":                            {"sync.resources.limits.memory", "lots", "at '/sync/resources/limits/memory'"},
		"a limit of lots for the webhook":            {"webhook.resources.limits.memory", "lots", "at '/webhook/resources/limits/memory'"},
		"a limit that holds no process":              {"sync.resources.limits.memory", "16Mi", "sync.resources.limits.memory: 16Mi is less than 64Mi"},
		"a limit that holds no process, as a number": {"sync.resources.limits.memory", 16 << 20, "is less than 64Mi"},
		"a limit that a flood reaches":               {"webhook.resources.limits.memory", "128Mi", "webhook.resources.limits.memory: 128Mi is less than 256Mi"},
		"no CPU":                                     {"sync.resources.limits.cpu", "two", "at '/sync/resources/limits/cpu'"},
		"nothing that a Pod has":                     {"sync.resources.limit", map[string]any{}, "additional properties 'limit' not allowed"},
		"longer than Go, and the kubelet, can count": {"webhook.drain", "99999999999999999h", "at '/webhook/drain'"},
		"seconds that are octal":                     {"webhook.drain", "010s", "at '/webhook/drain'"},
		"longer than the grace period of the Pod":    {"webhook.extraArgs", []any{"--drain=1h"}, "at '/webhook/extraArgs/0'"},
		"a value of its own":                         {"sync.extraArgs", []any{"--cache-size=1Ki"}, "at '/sync/extraArgs/0'"},
		"a grace period that overflows":              {"sync.shutdownGraceSeconds", 1 << 40, "at '/sync/shutdownGraceSeconds'"},
		"more workers than memory":                   {"sync.workers", 1 << 30, "at '/sync/workers'"},
		"the port of metrics":                        {"webhook.port", 8080, "at '/webhook/port'"},
		"the port of probes":                         {"webhook.port", 8081, "at '/webhook/port'"},
		"a budget that blocks for ever":              {"webhook.podDisruptionBudget.maxUnavailable", 0, "at '/webhook/podDisruptionBudget/maxUnavailable'"},
		"a budget of none in a hundred":              {"sync.podDisruptionBudget.maxUnavailable", "0%", "at '/sync/podDisruptionBudget/maxUnavailable'"},
		"a budget of nothing":                        {"sync.podDisruptionBudget.maxUnavailable", "", "at '/sync/podDisruptionBudget/maxUnavailable'"},
		"another kind of budget":                     {"sync.podDisruptionBudget.minAvailable", 2, "additional properties 'minAvailable' not allowed"},
		"a name that is too long for a Service":      {"sync.driverNamespaces", []any{strings.Repeat("a", 39)}, "at '/sync/driverNamespaces/0'"},
		"names that nobody signs":                    {"webhook.clientCA.names", []any{"a"}, "webhook.clientCA.names: needs webhook.clientCA.configMap"},
		"no image":                                   {"image.repository", "registry.example.com/way bill", "at '/image/repository'"},
		"no tag":                                     {"image.tag", "v1 ", "at '/image/tag'"},
	} {
		t.Run(reason, func(t *testing.T) {
			_, err := renderWaybill(t, nested(tc.path, tc.value))
			assert.ErrorContains(t, err, tc.says)
		})
	}
}

// What works is not refused with it.
func TestChart_takesWhatWorks(t *testing.T) {
	for reason, values := range map[string]map[string]any{
		"as many kustomizations as fit":    nested("sync.renderMemory", "640Mi"),
		"a fraction of a gibibyte":         nested("sync.renderMemory", "0.5Gi"),
		"no limit":                         {"sync": map[string]any{"resources": map[string]any{"limits": nil}, "renderMemory": "4Gi"}},
		"a number of bytes":                nested("sync.resources.limits.memory", 2<<30),
		"decimal bytes":                    nested("sync.resources.limits.memory", "2G"),
		"CPU and storage":                  nested("sync.resources.limits", map[string]any{"cpu": 2, "ephemeral-storage": "12Gi"}),
		"an agent needs no kustomizations": {"roles": map[string]any{"hub": false, "driver": false}, "sync": map[string]any{"resources": map[string]any{"limits": map[string]any{"memory": "256Mi"}}}},
		"a small cache":                    nested("sync.cacheSize", "256Mi"),
		"everybody at once":                nested("webhook.podDisruptionBudget.maxUnavailable", "100%"),
		"a registry with a port":           nested("image.repository", "localhost:5000/a/way-bill_x"),
		"a flag of a newer version":        nested("sync.extraArgs", []any{"--newer=1"}),
		"client certificates":              nested("webhook.clientCA", map[string]any{"configMap": "ca", "names": []any{"a", "b"}}),
	} {
		_, err := renderWaybill(t, values)
		assert.NoError(t, err, reason)
	}
}

// The schema takes exactly the selectors that the program takes.
func TestChart_clusterSelectorIsOne(t *testing.T) {
	for _, selector := range []string{
		"", "a", "!a", "a=b", "a==b", "a!=b", "a=", "a in (b)", "a in (b,c)", "a notin (b, c)", "a in ()", "a>1", "a<1", " a = b , c ",
		"example.com/region=eu,!old", "a b c", "a=b c", "a=b=c", "=a", "a,", ",a", "a in b", "a in (b", "a>b", "-a", "a/b/c", "a=-b", "Example.com/a",
		"a..b/c=d", "a=" + strings.Repeat("x", 63), "a=" + strings.Repeat("x", 64), "a;b", "{}", "a: b", "a!b", "!a=b", "a=ä",
	} {
		_, wrong := labels.Parse(selector)
		_, err := renderWaybill(t, nested("sync.clusterSelector", selector))
		assert.Equal(t, wrong == nil, err == nil, "%q: %v, %v", selector, wrong, err)
	}
}

// C10: the right to create Pods goes with the flag, and neither is there by default.
func TestChart_podDryRun(t *testing.T) {
	const role = "waybill-webhook-pod-dry-run"
	for _, on := range []bool{false, true} {
		var values map[string]any
		if on {
			values = nested("webhook.podDryRun", true)
		}
		objects, err := renderWaybill(t, values)
		require.NoError(t, err)
		args := fmt.Sprint(container(t, find(t, objects, "Deployment", "waybill-webhook"))["args"])
		assert.Equal(t, on, strings.Contains(args, "--pod-dry-run"))
		assert.Equal(t, on, strings.Contains(fmt.Sprint(names(objects, "ClusterRole")), role))
		assert.Equal(t, on, strings.Contains(fmt.Sprint(names(objects, "ClusterRoleBinding")), role))
	}
}

// The file of the flag is there, from the ConfigMap of the value.
func TestChart_clientCertificates(t *testing.T) {
	objects, err := renderWaybill(t, nested("webhook.clientCA", map[string]any{"configMap": "api-servers", "names": []any{"a", "b"}}))
	require.NoError(t, err)
	deployment := find(t, objects, "Deployment", "waybill-webhook")
	runs := container(t, deployment)
	assert.Subset(t, runs["args"], []any{"--client-ca-file=/client-ca/ca.crt", "--client-name=a,b"})
	assert.Equal(t, []any{map[string]any{"name": "client-ca", "mountPath": "/client-ca", "readOnly": true}}, runs["volumeMounts"])
	pod := deployment.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	assert.Equal(t, []any{map[string]any{"name": "client-ca", "configMap": map[string]any{
		"name": "api-servers", "items": []any{map[string]any{"key": "ca.crt", "path": "ca.crt"}},
	}}}, pod["volumes"])
}
