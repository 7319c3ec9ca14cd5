package application_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// Where there is no agent any more, an Application is released as api/docs says; finalizers of others
// are not taken off by that.
func TestRelease_withoutAnAgent(t *testing.T) {
	w, stop := newStoppableAgentWorld(t, right("", "configmaps"))
	app := shop(named("ConfigMap", "settings"))
	w.Create(app)
	settings := configMap(member("settings"))
	w.Create(settings)
	w.awaitOwned(settings, app, true)
	stop()

	release := func() error {
		_, err := w.Cluster.Kubectl(t.Context(), "", "-n", w.Namespace, "patch", "applications.apps.waybill.dev", "shop", "--type", "json", "--patch",
			`[{"op": "test", "path": "/metadata/finalizers/0", "value": "apps.waybill.dev/ownership"},
			  {"op": "remove", "path": "/metadata/finalizers/0"}]`)
		return err
	}
	require.NoError(t, w.Client.Delete(t.Context(), app))
	require.True(t, w.Exists(app, "shop"), "the finalizer holds it")
	require.Equal(t, []string{v1alpha1.OwnershipFinalizer}, app.Finalizers)
	require.NoError(t, release())
	w.AwaitGone(app, "shop")

	foreign := shop()
	foreign.Finalizers = []string{"example.com/hold"}
	w.Create(foreign)
	require.Error(t, release())
	require.True(t, w.Exists(foreign, "shop"))
	assert.Equal(t, []string{"example.com/hold"}, foreign.Finalizers)
	hub.Change(w.World, foreign, func(app *v1alpha1.Application) { app.Finalizers = nil })
}
