package gitsync_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// definition is a manifest.
func definition(name, version string) string {
	return "apiVersion: apps.waybill.dev/v1alpha1\nkind: ApplicationDefinition\nmetadata: {name: " + name + "}\n" +
		"spec: {versions: [{version: " + version + ", template: {source: {helm: {url: \"https://charts.example.com\", chartName: web, chartVersion: " + version + "}}}}]}\n"
}

// C27: of two repositories that publish one definition, the first one has it. The second one names the owner and
// delivers everything else; it has the definition as soon as the first one releases it.
func TestGitSync_twoRepositoriesPublishOneDefinition(t *testing.T) {
	w := newWorld(t)
	name := w.Namespace + "-web"
	w.commit(map[string]string{"web.yaml": definition(name, "1.0.0"), "rest.yaml": configMap("rest", "x")})
	first := hub.AwaitReady(w.World, w.sync(nil))
	_, other := hub.NewRepo(t)
	_, err := other.Commit(t.Context(), map[string]string{"web.yaml": definition(name, "2.0.0"), "more.yaml": definition(name+"-more", "2.0.0")})
	require.NoError(t, err)
	second := &v1alpha1.GitSync{ObjectMeta: named("others"), Spec: *first.Spec.DeepCopy()}
	second.Spec.URL = other.URL()
	w.Create(second)

	message := hub.AwaitReason(w.World, second, v1alpha1.ApplyFailedReason)
	assert.Contains(t, message, "web.yaml:1: ApplicationDefinition.apps.waybill.dev "+name+": it belongs to GitSync "+w.Namespace+"/apps; ", "where, what, whose")
	assert.Contains(t, message, v1alpha1.AdoptAnnotation, "the way out")
	published := &v1alpha1.ApplicationDefinition{}
	require.True(t, w.ExistsIn("", published, name))
	assert.NotNil(t, published.GetVersion("1.0.0"))
	assert.Nil(t, published.GetVersion("2.0.0"), "the first one's is left as it is")
	assert.True(t, w.ExistsIn("", published, name+"-more"), "what no other publishes is delivered")
	hub.AwaitReady(w.World, first)

	w.remove("web.yaml")
	hub.Reconcile(w.World, first)
	hub.AwaitReady(w.World, second)
	require.True(t, w.ExistsIn("", published, name))
	assert.NotNil(t, published.GetVersion("2.0.0"))
}
