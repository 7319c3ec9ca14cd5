package integration_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The notes tell users what is to be done in a cluster of that kind, and nothing else.
func TestChart_notes(t *testing.T) {
	const (
		catalog  = "kind: GitSync"
		backup   = "Back up ConfigMap `waybill-hub`"
		driven   = "This cluster is driven by a hub"
		upgrade  = "kubectl apply --server-side --force-conflicts -f charts/waybill/crds"
		ownerRef = "apps.waybill.dev/ownership"
	)
	for name, tc := range map[string]struct {
		hub, driver, agent bool
		says               []string
	}{
		"everything":     {true, true, true, []string{catalog, backup, ownerRef}},
		"a hub":          {true, true, false, []string{catalog, backup}},
		"a catalog":      {true, false, false, []string{catalog, backup}},
		"a driver":       {false, true, false, []string{backup}},
		"a user cluster": {false, false, true, []string{driven, ownerRef}},
		"admission only": {false, false, false, []string{driven}},
	} {
		t.Run(name, func(t *testing.T) {
			rel, err := releaseWaybill(t, map[string]any{"roles": map[string]any{"hub": tc.hub, "driver": tc.driver, "agent": tc.agent}})
			require.NoError(t, err)
			assert.Contains(t, rel.Info.Notes, upgrade)
			for _, text := range []string{catalog, backup, driven, ownerRef} {
				if slices.Contains(tc.says, text) {
					assert.Contains(t, rel.Info.Notes, text)
				} else {
					assert.NotContains(t, rel.Info.Notes, text)
				}
			}
		})
	}
}

// One replica is never held up by a budget, nor spread.
func TestChart_replicasArePlaced(t *testing.T) {
	for reason, tc := range map[string]struct {
		sync    map[string]any
		budgets []string
	}{
		"one is alone":      {map[string]any{}, []string{"waybill-webhook"}},
		"two are kept":      {map[string]any{"replicas": 2}, []string{"waybill-sync", "waybill-webhook"}},
		"two of each role":  {map[string]any{"replicas": 2, "perRole": true}, []string{"waybill-agent", "waybill-driver", "waybill-hub", "waybill-webhook"}},
		"unless told to":    {map[string]any{"replicas": 2, "podDisruptionBudget": map[string]any{"enabled": false}}, []string{"waybill-webhook"}},
		"nobody is no more": {map[string]any{"replicas": 0}, []string{"waybill-webhook"}},
	} {
		objects, err := renderWaybill(t, map[string]any{"sync": tc.sync})
		require.NoError(t, err)
		assert.Equal(t, tc.budgets, names(objects, "PodDisruptionBudget"), reason)
		for _, name := range names(objects, "Deployment") {
			deployment := find(t, objects, "Deployment", name)
			_, spread, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "topologySpreadConstraints")
			assert.Equal(t, name == "waybill-webhook" || tc.sync["replicas"] == 2, spread, "%s: %s", reason, name)
		}
	}
}

// API servers reach the webhook where their network, or a firewall, leaves them one way only.
func TestChart_webhookWhereAPIServersReachIt(t *testing.T) {
	for name, tc := range map[string]struct {
		webhook     map[string]any
		listen      string
		port        int64
		hostNetwork any
		dns         any
	}{
		"by default":       {map[string]any{}, "--listen=:9443", 9443, nil, nil},
		"behind firewalls": {map[string]any{"port": 10250}, "--listen=:10250", 10250, nil, nil},
		"without Pods":     {map[string]any{"hostNetwork": true}, "--listen=:9443", 9443, true, "ClusterFirstWithHostNet"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := renderWaybill(t, map[string]any{"webhook": tc.webhook})
			require.NoError(t, err)
			deployment := find(t, objects, "Deployment", "waybill-webhook")
			runs := container(t, deployment)
			assert.Contains(t, runs["args"], tc.listen)
			assert.Contains(t, runs["ports"], map[string]any{"name": "webhook", "containerPort": tc.port})
			pod, _, err := unstructured.NestedMap(deployment.Object, "spec", "template", "spec")
			require.NoError(t, err)
			assert.Equal(t, tc.hostNetwork, pod["hostNetwork"])
			assert.Equal(t, tc.dns, pod["dnsPolicy"])
		})
	}
}

// What enforces rules of a platform on webhooks of others, as on AKS, leaves ours alone: the controller that fills
// them would correct what it adds, again and again.
func TestChart_configurationsAreLeftAlone(t *testing.T) {
	objects, err := renderWaybill(t, nil)
	require.NoError(t, err)
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		assert.Equal(t, "true", find(t, objects, kind, "waybill").GetLabels()["admissions.enforcer/disabled"], kind)
	}
}

// A Pod of waybill-sync lives as long as its whole shutdown may take, whatever its jobs are given.
func TestChart_podsOutliveTheShutdown(t *testing.T) {
	for _, seconds := range []int64{0, 10, 3600} {
		objects, err := renderWaybill(t, map[string]any{"sync": map[string]any{"shutdownGraceSeconds": seconds}})
		require.NoError(t, err)
		deployment := find(t, objects, "Deployment", "waybill-sync")
		assert.Contains(t, container(t, deployment)["args"], fmt.Sprintf("--shutdown-grace=%ds", seconds))
		pod, _, err := unstructured.NestedInt64(deployment.Object, "spec", "template", "spec", "terminationGracePeriodSeconds")
		require.NoError(t, err)
		assert.Equal(t, seconds+50, pod)
	}
}

// A Pod of waybill-webhook lives until no API server asks it any more.
func TestChart_podsOutliveTheDrain(t *testing.T) {
	for drain, seconds := range map[string]int64{"0s": 0, "5s": 5, "1m": 60, "1m30s": 90, "1h0m5s": 3605} {
		objects, err := renderWaybill(t, map[string]any{"webhook": map[string]any{"drain": drain}})
		require.NoError(t, err)
		deployment := find(t, objects, "Deployment", "waybill-webhook")
		assert.Contains(t, container(t, deployment)["args"], "--drain="+drain)
		pod, _, err := unstructured.NestedInt64(deployment.Object, "spec", "template", "spec", "terminationGracePeriodSeconds")
		require.NoError(t, err)
		assert.Equal(t, seconds+25, pod, drain)
	}
	_, err := renderWaybill(t, map[string]any{"webhook": map[string]any{"drain": "500ms"}})
	require.ErrorContains(t, err, "drain", "parts of a second are not counted")
}

// waybill-sync keeps to the size of its folder, or else the kubelet evicts it.
func TestChart_syncKnowsTheSizeOfItsCache(t *testing.T) {
	objects, err := renderWaybill(t, map[string]any{"sync": map[string]any{"cacheSize": "3Gi"}})
	require.NoError(t, err)
	deployment := find(t, objects, "Deployment", "waybill-sync")
	assert.Contains(t, container(t, deployment)["args"], "--cache-size=3Gi")
	volumes, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "volumes")
	require.NoError(t, err)
	assert.Contains(t, volumes, map[string]any{"name": "cache", "emptyDir": map[string]any{"sizeLimit": "3Gi"}})
}

func TestChart_environmentAndAccounts(t *testing.T) {
	env := func(name string) []any { return []any{map[string]any{"name": name, "value": "x"}} }
	objects, err := renderWaybill(t, map[string]any{
		"sync": map[string]any{"env": env("HTTPS_PROXY")}, "webhook": map[string]any{"env": env("NO_PROXY")},
		"serviceAccount": map[string]any{"annotations": map[string]any{"example.com/role": "waybill"}},
	})
	require.NoError(t, err)
	assert.Equal(t, env("HTTPS_PROXY"), container(t, find(t, objects, "Deployment", "waybill-sync"))["env"])
	assert.Equal(t, env("NO_PROXY"), container(t, find(t, objects, "Deployment", "waybill-webhook"))["env"])
	for _, name := range names(objects, "ServiceAccount") {
		assert.Equal(t, map[string]string{"example.com/role": "waybill"}, find(t, objects, "ServiceAccount", name).GetAnnotations(), name)
	}
}

// Metrics are for those whom the values name; who else has to reach a Pod does.
func TestChart_networkPolicies(t *testing.T) {
	prometheus := []any{map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "monitoring"}}}}
	for reason, from := range map[string][]any{"open to all while empty": nil, "as the values say": prometheus} {
		objects, err := renderWaybill(t, map[string]any{"networkPolicy": map[string]any{"enabled": true, "metricsFrom": from}})
		require.NoError(t, err)
		require.Equal(t, []string{"waybill-sync", "waybill-webhook"}, names(objects, "NetworkPolicy"))
		for _, name := range names(objects, "NetworkPolicy") {
			ingress, _, err := unstructured.NestedSlice(find(t, objects, "NetworkPolicy", name).Object, "spec", "ingress")
			require.NoError(t, err)
			senders := map[any]any{}
			for _, rule := range ingress {
				for _, port := range rule.(map[string]any)["ports"].([]any) {
					senders[port.(map[string]any)["port"]] = rule.(map[string]any)["from"]
				}
			}
			want := map[any]any{"health": nil, "metrics": nil}
			if from != nil {
				want["metrics"] = from
			}
			if name == "waybill-webhook" {
				want["webhook"] = nil
			}
			assert.Equal(t, want, senders, "%s: %s", reason, name)
		}
	}
}

func TestChart_serviceMonitors(t *testing.T) {
	objects, err := renderWaybill(t, map[string]any{"metrics": map[string]any{"serviceMonitor": map[string]any{"enabled": true}}})
	require.NoError(t, err)
	assert.Equal(t, []string{"waybill-sync", "waybill-webhook"}, names(objects, "ServiceMonitor"))
	for _, name := range names(objects, "ServiceMonitor") {
		endpoints, _, _ := unstructured.NestedSlice(find(t, objects, "ServiceMonitor", name).Object, "spec", "endpoints")
		require.Len(t, endpoints, 1)
		assert.Equal(t, true, endpoints[0].(map[string]any)["honorLabels"], "series have a label namespace of their own")
	}
}

// Alerts are about series that some program has, with the labels that their texts show.
func TestChart_alerts(t *testing.T) {
	objects, err := renderWaybill(t, map[string]any{"metrics": map[string]any{"prometheusRule": map[string]any{
		"enabled": true, "labels": map[string]any{"release": "prometheus"},
	}}})
	require.NoError(t, err)
	rule := find(t, objects, "PrometheusRule", "waybill")
	assert.Equal(t, "prometheus", rule.GetLabels()["release"])
	groups, _, err := unstructured.NestedSlice(rule.Object, "spec", "groups")
	require.NoError(t, err)
	require.Len(t, groups, 1)
	alerts := groups[0].(map[string]any)["rules"].([]any)
	require.NotEmpty(t, alerts)
	source := productionCode(t)
	for _, alert := range alerts {
		a := alert.(map[string]any)
		series := regexp.MustCompile(`waybill_\w+`).FindAllString(a["expr"].(string), -1)
		require.Len(t, series, 1, a["alert"])
		metric := regexp.MustCompile(`(?s)Name:\s+"` + series[0] + `".*?\n\t?\}.*?\n`).FindString(source)
		require.NotEmpty(t, metric, "%s: no program has %s", a["alert"], series[0])
		text, err := json.Marshal(a["annotations"])
		require.NoError(t, err)
		for _, label := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(string(text), -1) {
			if label[1] != "pod" { // Prometheus adds that one
				assert.Contains(t, metric, `"`+label[1]+`"`, "%s: %s has no such label", a["alert"], series[0])
			}
		}
		assert.NotEmpty(t, a["for"], a["alert"])
	}
}

// productionCode is all Go code of controllers and admission but their tests.
func productionCode(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, root := range []string{"../../sync", "../../webhooks"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			content, err := os.ReadFile(path)
			all.Write(content)
			return err
		}))
	}
	return all.String()
}

// The chart's page names every value with its default, and no other.
func TestChart_readmeNamesEveryValue(t *testing.T) {
	content, err := os.ReadFile(waybillChart + "/values.yaml")
	require.NoError(t, err)
	values := map[string]any{}
	require.NoError(t, yaml.Unmarshal(content, &values))
	want := map[string]string{}
	flatten(t, "", values, want)
	want["agent.componentKinds"] = "see values.yaml" // a page of its own

	page, err := os.ReadFile(waybillChart + "/README.md")
	require.NoError(t, err)
	got := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([\\w.]+)` \\| `?(.*?)`? \\| .+ \\|$").FindAllStringSubmatch(string(page), -1) {
		got[row[1]] = row[2]
	}
	assert.Equal(t, want, got)
}

// flatten collects the leaves: what is no map, or an empty one, as JSON.
func flatten(t *testing.T, prefix string, values map[string]any, into map[string]string) {
	t.Helper()
	for key, value := range values {
		if m, ok := value.(map[string]any); ok && len(m) > 0 {
			flatten(t, prefix+key+".", m, into)
			continue
		}
		text, err := json.Marshal(value)
		require.NoError(t, err)
		into[prefix+key] = string(text)
	}
}
