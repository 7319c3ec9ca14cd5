package integration_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
)

const waybillChart = "../../charts/waybill"

// releaseWaybill is a release of the product's own chart in the system namespace, without a cluster.
func releaseWaybill(t *testing.T, values map[string]any) (*release.Release, error) {
	t.Helper()
	chart, err := loader.LoadDir(waybillChart)
	require.NoError(t, err)
	install := action.NewInstall(&action.Configuration{Capabilities: chartutil.DefaultCapabilities})
	install.ReleaseName, install.Namespace = "waybill", v1alpha1.DefaultSystemNamespace
	install.ClientOnly, install.DryRun, install.KubeVersion = true, true, &chartutil.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	return install.RunWithContext(t.Context(), chart, values)
}

// renderWaybill returns what that release consists of.
func renderWaybill(t *testing.T, values map[string]any) ([]*unstructured.Unstructured, error) {
	t.Helper()
	rel, err := releaseWaybill(t, values)
	if err != nil {
		return nil, err
	}
	return decodeObjects(t, []byte(rel.Manifest)), nil
}

// names are those of the objects of a kind, sorted.
func names(objects []*unstructured.Unstructured, kind string) []string {
	var found []string
	for _, o := range objects {
		if o.GetKind() == kind {
			found = append(found, o.GetName())
		}
	}
	slices.Sort(found)
	return found
}

// find returns the object of that kind and name.
func find(t *testing.T, objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	require.GreaterOrEqual(t, at, 0, "%s %s", kind, name)
	return objects[at]
}

// container is the one of a Deployment.
func container(t *testing.T, deployment *unstructured.Unstructured) map[string]any {
	t.Helper()
	containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	require.Len(t, containers, 1, deployment.GetName())
	return containers[0].(map[string]any)
}

func TestChart_lints(t *testing.T) {
	for _, message := range action.NewLint().Run([]string{waybillChart}, nil).Messages {
		assert.Less(t, message.Severity, support.WarningSev, message.Error())
	}
}

// C44: whatever the values ask for is accepted by an API server, field by field.
func TestChart_isAccepted(t *testing.T) {
	a := newExampleApplier(t)
	for name, tc := range map[string]struct {
		values      map[string]any
		deployments []string
	}{
		"by default": {nil, []string{"waybill-sync", "waybill-webhook"}},
		"a user cluster": {map[string]any{"roles": map[string]any{"hub": false, "driver": false}},
			[]string{"waybill-sync", "waybill-webhook"}},
		"admission only": {map[string]any{"roles": map[string]any{"hub": false, "driver": false, "agent": false}},
			[]string{"waybill-webhook"}},
		"a process per role": {map[string]any{"sync": map[string]any{"perRole": true}},
			[]string{"waybill-agent", "waybill-driver", "waybill-hub", "waybill-webhook"}},
		"a process per role, and another that stands by": {map[string]any{"sync": map[string]any{"perRole": true, "replicas": 2}},
			[]string{"waybill-agent", "waybill-driver", "waybill-hub", "waybill-webhook"}},
		"a driver per namespace": {map[string]any{"sync": map[string]any{"driverNamespaces": []any{"team-a", "team-b"}}},
			[]string{"waybill-driver-team-a", "waybill-driver-team-b", "waybill-sync", "waybill-webhook"}},
		"everything": {map[string]any{
			"image":            map[string]any{"digest": "sha256:" + string(slices.Repeat([]byte("a"), 64))},
			"imagePullSecrets": []any{"registry"},
			"networkPolicy":    map[string]any{"enabled": true, "metricsFrom": []any{map[string]any{"namespaceSelector": map[string]any{}}}},
			"serviceAccount":   map[string]any{"annotations": map[string]any{"a": "b"}},
			"webhook": map[string]any{"env": []any{map[string]any{"name": "NO_PROXY", "value": "10.0.0.0/8"}}, "remoteDryRun": true, "podDryRun": true, "port": 10250, "hostNetwork": true,
				"clientCA": map[string]any{"configMap": "ca", "names": []any{"kube-apiserver"}}},
			"userRoles": map[string]any{"installForAdmins": true, "clustersForAdmins": true},
			"dashboard": map[string]any{"enabled": true, "url": "https://waybill.example.com", "tlsSecret": "tls", "kubeconfigNamespace": "default",
				"oidc":                map[string]any{"issuerURL": "https://id.example.com", "clientID": "waybill", "clientSecret": "client", "caConfigMap": "ca"},
				"impersonation":       map[string]any{"extraRules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"impersonate-on:user-info:create"}}}},
				"podDisruptionBudget": map[string]any{"enabled": true}, "podAnnotations": map[string]any{"a": "b"}, "podLabels": map[string]any{"a": "b"},
				"env": []any{map[string]any{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}}},
			"sync": map[string]any{
				"clusterSelector": "region=eu", "allowKubeconfigExec": true, "allowKubeconfigInsecure": true, "extraArgs": []any{"--v"},
				"nodeSelector": map[string]any{"a": "b"}, "tolerations": []any{map[string]any{"operator": "Exists"}},
				"affinity": map[string]any{"nodeAffinity": map[string]any{}}, "podLabels": map[string]any{"a": "b"},
				"podAnnotations": map[string]any{"a": "b"}, "priorityClassName": "system-cluster-critical",
				"env": []any{map[string]any{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}}, "replicas": 2,
			},
		}, []string{"waybill-dashboard", "waybill-sync", "waybill-webhook"}},
		"a dashboard behind a proxy": {map[string]any{"dashboard": map[string]any{"enabled": true, "url": "https://waybill.example.com",
			"proxy": map[string]any{"caConfigMap": "ca", "allowedNames": []any{"front"}}, "impersonation": map[string]any{"mode": "Any", "groups": []any{"team"}}}},
			[]string{"waybill-dashboard", "waybill-sync", "waybill-webhook"}},
		"an account for the dashboard of the hub": {map[string]any{"roles": map[string]any{"hub": false, "driver": false}, "dashboard": map[string]any{"impersonation": map[string]any{"account": true}}},
			[]string{"waybill-sync", "waybill-webhook"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := renderWaybill(t, tc.values)
			require.NoError(t, err)
			assert.Equal(t, tc.deployments, names(objects, "Deployment"))
			a.apply(t, objects)
		})
	}
}

// What the chart passes to a program is a flag of that program.
func TestChart_flagsExist(t *testing.T) {
	oidc := map[string]any{"issuerURL": "https://id.example.com", "clientID": "waybill", "clientSecret": "client", "caConfigMap": "ca"}
	proxied, err := renderWaybill(t, map[string]any{"dashboard": map[string]any{"enabled": true, "url": "https://waybill.example.com",
		"proxy": map[string]any{"caConfigMap": "ca", "allowedNames": []any{"front"}}}})
	require.NoError(t, err)
	objects, err := renderWaybill(t, map[string]any{
		"sync":      map[string]any{"clusterSelector": "a=b", "allowKubeconfigExec": true, "allowKubeconfigInsecure": true, "driverNamespaces": []any{"team-a"}},
		"webhook":   map[string]any{"remoteDryRun": true, "podDryRun": true, "clientCA": map[string]any{"configMap": "ca", "names": []any{"a"}}},
		"dashboard": map[string]any{"enabled": true, "url": "https://waybill.example.com", "tlsSecret": "tls", "kubeconfigNamespace": "x", "oidc": oidc},
	})
	require.NoError(t, err)
	for _, o := range append(objects, proxied...) {
		if o.GetKind() != "Deployment" {
			continue
		}
		runs := container(t, o)
		source, err := os.ReadFile("../../cmd" + runs["command"].([]any)[0].(string) + "/main.go")
		require.NoError(t, err)
		for _, arg := range runs["args"].([]any) {
			name, _, _ := strings.Cut(strings.TrimPrefix(arg.(string), "--"), "=")
			if !strings.HasPrefix(name, "log-") { // those are a library's
				assert.Contains(t, string(source), strconv.Quote(name), o.GetName())
			}
		}
	}
}

// A typo in a value is an error, not a default.
func TestChart_refusesUnknownValues(t *testing.T) {
	for reason, tc := range map[string]struct {
		values map[string]any
		says   string
	}{
		"typo":          {map[string]any{"replicaCount": 2}, "additional properties 'replicaCount' not allowed"},
		"typo within":   {map[string]any{"webhook": map[string]any{"replica": 2}}, "additional properties 'replica' not allowed"},
		"wrong type":    {map[string]any{"webhook": map[string]any{"replicas": "two"}}, "at '/webhook/replicas': got string, want integer"},
		"no driver":     {map[string]any{"roles": map[string]any{"driver": false}, "sync": map[string]any{"driverNamespaces": []any{"team-a"}}}, "sync.driverNamespaces: needs roles.driver"},
		"no such place": {nested("sync.credentialsNamespace", "default"), "at '/sync/credentialsNamespace': value must be one of 'system', 'cluster'"},
		"no such level": {map[string]any{"log": map[string]any{"level": "verbose"}}, "at '/log/level': value must be one of 'trace', 'debug', 'info', 'error'"},
		"no address":    {nested("dashboard.enabled", true), "dashboard.url: the dashboard needs"},
		"nobody":        {map[string]any{"dashboard": map[string]any{"enabled": true, "url": "https://a"}}, "dashboard.oidc.issuerURL: the dashboard needs it"},
		"no client":     {map[string]any{"dashboard": map[string]any{"enabled": true, "url": "https://a", "oidc": map[string]any{"issuerURL": "https://b"}}}, "dashboard.oidc.clientID"},
		"who is it":     {map[string]any{"dashboard": map[string]any{"enabled": true, "url": "https://a", "oidc": map[string]any{"issuerURL": "https://b", "clientID": "c"}, "proxy": map[string]any{"caConfigMap": "d"}}}, "both say who people are"},
		"all secrets":   {map[string]any{"dashboard": map[string]any{"enabled": true, "url": "https://a", "proxy": map[string]any{"caConfigMap": "d"}, "kubeconfigNamespace": "waybill-system"}}, "dashboard.kubeconfigNamespace"},
		"no memory":     {map[string]any{"dashboard": map[string]any{"enabled": true, "url": "https://a", "proxy": map[string]any{"caConfigMap": "d"}, "resources": map[string]any{"limits": map[string]any{"memory": "512Mi"}}}}, "dashboard.resources.limits.memory: 512Mi is less than 1Gi"},
		"plain text":    {nested("dashboard.url", "http://waybill.example.com"), "at '/dashboard/url'"},
		"no name":       {map[string]any{"sync": map[string]any{"env": []any{map[string]any{"value": "a"}}}}, "at '/sync/env/0': missing property 'name'"},
	} {
		_, err := renderWaybill(t, tc.values)
		assert.ErrorContains(t, err, tc.says, reason)
	}
}
