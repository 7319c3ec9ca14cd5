package integration_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// C44: the account that impersonates is that of the dashboard's process, and of no other; and where it is not asked for, no account may.
func TestChart_nobodyElseImpersonates(t *testing.T) {
	objects, err := renderWaybill(t, nil)
	require.NoError(t, err)
	assert.NotContains(t, names(objects, "ServiceAccount"), "waybill-dashboard")
	assert.NotContains(t, names(objects, "ClusterRole"), "waybill-dashboard-impersonation")

	objects, err = renderWaybill(t, map[string]any{"dashboard": map[string]any{
		"enabled": true, "url": "https://waybill.example.com", "kubeconfigNamespace": "kubeconfigs",
		"oidc": map[string]any{"issuerURL": "https://id.example.com", "clientID": "waybill"},
	}})
	require.NoError(t, err)
	for _, name := range names(objects, "Deployment") {
		account, _, _ := unstructured.NestedString(find(t, objects, "Deployment", name).Object, "spec", "template", "spec", "serviceAccountName")
		assert.Equal(t, name, account)
	}
	for _, o := range objects {
		subjects, bound, _ := unstructured.NestedSlice(o.Object, "subjects")
		dashboard := slices.ContainsFunc(subjects, func(s any) bool { return s.(map[string]any)["name"] == "waybill-dashboard" })
		if role, _, _ := unstructured.NestedString(o.Object, "roleRef", "name"); bound && role == "waybill-dashboard-impersonation" {
			assert.Len(t, subjects, 1)
			assert.True(t, dashboard)
		} else if bound && dashboard {
			assert.Equal(t, "waybill-dashboard", o.GetName(), "it has nothing else but its watches and its kubeconfigs")
		}
	}
	assert.Equal(t, "kubeconfigs", find(t, objects, "Role", "waybill-dashboard").GetNamespace())
}

// In a user cluster there is an account with a token, which may impersonate and nothing else.
func TestChart_accountForTheDashboardOfTheHub(t *testing.T) {
	objects, err := renderWaybill(t, nested("dashboard.impersonation.account", true))
	require.NoError(t, err)
	assert.Contains(t, names(objects, "Secret"), "waybill-dashboard-token")
	assert.Contains(t, names(objects, "ClusterRole"), "waybill-dashboard-impersonation")
	assert.NotContains(t, names(objects, "ClusterRole"), "waybill-dashboard")
	assert.NotContains(t, names(objects, "Deployment"), "waybill-dashboard")
}

// Sessions are sealed with a key of the chart's, or one of your own.
func TestChart_sessionKey(t *testing.T) {
	values := map[string]any{"enabled": true, "url": "https://waybill.example.com", "oidc": map[string]any{"issuerURL": "https://id.example.com", "clientID": "waybill"}}
	volume := func(objects []*unstructured.Unstructured) any {
		volumes, _, _ := unstructured.NestedSlice(find(t, objects, "Deployment", "waybill-dashboard").Object, "spec", "template", "spec", "volumes")
		require.Len(t, volumes, 3)
		return volumes[2].(map[string]any)["secret"].(map[string]any)["secretName"]
	}
	objects, err := renderWaybill(t, map[string]any{"dashboard": values})
	require.NoError(t, err)
	assert.Equal(t, "waybill-dashboard-session", volume(objects))
	assert.NotEmpty(t, find(t, objects, "Secret", "waybill-dashboard-session").Object["data"])
	values["session"] = map[string]any{"keySecret": "own"}
	objects, err = renderWaybill(t, map[string]any{"dashboard": values})
	require.NoError(t, err)
	assert.Equal(t, "own", volume(objects))
	assert.NotContains(t, names(objects, "Secret"), "waybill-dashboard-session")
}

// What people look into fits into the volume, so that the Pod is not evicted for it.
func TestChart_dashboardCache(t *testing.T) {
	values := map[string]any{"enabled": true, "url": "https://waybill.example.com", "proxy": map[string]any{"caConfigMap": "proxy"}, "cacheSize": "3Gi"}
	objects, err := renderWaybill(t, map[string]any{"dashboard": values})
	require.NoError(t, err)
	deployment := find(t, objects, "Deployment", "waybill-dashboard")
	assert.Subset(t, container(t, deployment)["args"], []any{"--cache-dir=/cache", "--cache-size=3Gi"})
	assert.Contains(t, container(t, deployment)["volumeMounts"], map[string]any{"name": "cache", "mountPath": "/cache"})
	volumes, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "volumes")
	assert.Contains(t, volumes, map[string]any{"name": "cache", "emptyDir": map[string]any{"sizeLimit": "3Gi"}})
	values["cacheSize"] = "1Mi"
	_, err = renderWaybill(t, map[string]any{"dashboard": values})
	assert.ErrorContains(t, err, "dashboard.cacheSize: 1Mi is less than 256Mi")
}
