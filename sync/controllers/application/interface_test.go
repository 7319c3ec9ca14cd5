package application_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// A1, A8, A11, A12, A13, A14, A15, A16, A17, A18: every field that the document names is served as it
// was written, by its name.
func TestInterface_servesWhatTheDocumentNames(t *testing.T) {
	w := newWorld(t)
	app := shop(named("ConfigMap", "settings"), deploymentNamed("web"))
	app.Spec.HealthCheck = healthCheck("check")
	app.Spec.Version, app.Spec.AboutURL = "1.0", "https://example.com/about"
	app.Spec.Description = "sells things"
	app.Spec.Maintainers, app.Spec.Keywords = []string{"a", "b"}, []string{"shop", "web"}
	app.Spec.LicenseURL, app.Spec.DashboardURL = "https://example.com/license", "https://example.com/dashboard"
	w.Create(app)

	raw := &unstructured.Unstructured{}
	raw.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationKind))
	require.NoError(t, w.Client.Get(t.Context(), client.ObjectKeyFromObject(app), raw))
	spec, _, err := unstructured.NestedMap(raw.Object, "spec")
	require.NoError(t, err)
	for field, want := range map[string]any{
		"version": "1.0", "url": "https://example.com/about", "description": "sells things",
		"maintainers": []any{"a", "b"}, "keywords": []any{"shop", "web"},
		"license": "https://example.com/license", "dashboard": "https://example.com/dashboard",
		"components": []any{
			map[string]any{"group": "", "kind": "ConfigMap", "name": "settings"},
			map[string]any{"group": "apps", "kind": "Deployment", "name": "web"},
		},
	} {
		assert.Equal(t, want, spec[field], field)
	}
	containers, found, err := unstructured.NestedSlice(spec, "healthCheck", "template", "spec", "containers")
	require.NoError(t, err)
	assert.True(t, found)
	assert.Len(t, containers, 1)

	require.NoError(t, w.Client.Patch(t.Context(), app, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"version":"2.0"}}`))))
	assert.Equal(t, "2.0", app.Spec.Version)
	w.delete(app)
}

// A3, A21, A22, A95, A96: with nothing but an Application in hand a client finds its components, by
// kind and selector, its dependencies by their names, and what of both is installed.
func TestInterface_leadsToEverything(t *testing.T) {
	w := newWorld(t)
	database := shop()
	database.Name = "database"
	database.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "database"}}
	w.Create(database)
	w.Create(configMap(member("settings")))
	w.Create(secret(member("password")))
	app := shop(named("ConfigMap", "settings"), named("Secret", ""), named("Service", "later"))
	app.Spec.Dependencies = []string{"database", "queue"}
	w.Create(app)
	w.awaitComponents(app, "2/3")
	assert.Equal(t, []string{"ConfigMap/settings", "Secret/password", "Application/database"}, app.Status.Installed)
	assert.Equal(t, metav1.ConditionUnknown, app.Status.Ready, "there is no health check")

	selector, err := metav1.LabelSelectorAsSelector(app.Spec.Selector)
	require.NoError(t, err)
	var found []string
	for _, c := range app.Spec.Components {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: c.Group, Version: "v1", Kind: c.Kind + "List"})
		require.NoError(t, w.Client.List(t.Context(), list, inNamespace(w), client.MatchingLabelsSelector{Selector: selector}))
		for i := range list.Items {
			found = append(found, c.Kind+"/"+list.Items[i].Name)
		}
	}
	assert.Equal(t, []string{"ConfigMap/settings", "Secret/password"}, found)
	assert.True(t, w.Exists(&v1alpha1.Application{}, app.Spec.Dependencies[0]))
	hub.AwaitReason(w.World, app, v1alpha1.NotHealthyReason)
}
