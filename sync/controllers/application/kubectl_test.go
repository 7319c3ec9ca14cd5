package application_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

const manifest = `
apiVersion: apps.waybill.dev/v1alpha1
kind: Application
metadata: {name: shop}
spec:
  type: shop
  selector: {matchLabels: {app: shop}}
  components:
    - {kind: ConfigMap, name: settings}
`

// A91: Applications are used with kubectl as any other kind is.
func TestKubectl_works(t *testing.T) {
	w := newWorld(t)
	kubectl := func(input string, args ...string) string {
		t.Helper()
		out, err := w.Cluster.Kubectl(t.Context(), input, append([]string{"-n", w.Namespace}, args...)...)
		require.NoError(t, err)
		return out
	}
	const resource = "applications.apps.waybill.dev"
	assert.Equal(t, "application.apps.waybill.dev/shop created\n", kubectl(manifest, "create", "--save-config", "-f", "-"))
	w.Create(configMap(member("settings")))
	app := &v1alpha1.Application{}
	app.Namespace, app.Name = w.Namespace, "shop"
	w.awaitComponents(app, "1/1")
	hub.AwaitReady(w.World, app)

	lines := strings.Split(kubectl("", "get", resource), "\n")
	assert.Equal(t, []string{"NAME", "TYPE", "VERSION", "READY", "COMPONENTS", "AGE"}, strings.Fields(lines[0]))
	assert.Subset(t, strings.Fields(lines[1]), []string{"shop", "True", "1/1"}, "what has no health check is ready as well")
	assert.Contains(t, strings.Join(strings.Fields(kubectl("", "get", resource, "-o", "wide")), " "), "AGE HEALTH-CHECK STATUS shop shop True 1/1")
	assert.Equal(t, "application.apps.waybill.dev/shop\n", kubectl("", "get", v1alpha1.Category, "-o", "name"))

	changed := strings.Replace(manifest, "type: shop", "type: store", 1)
	assert.Equal(t, "application.apps.waybill.dev/shop configured\n", kubectl(changed, "apply", "-f", "-"))
	kubectl(changed, "apply", "-f", "-")
	assert.Equal(t, "application.apps.waybill.dev/shop serverside-applied\n", kubectl(changed, "apply", "--server-side", "--force-conflicts", "-f", "-"))
	hub.Await(w.World, app, "the change is not observed", func(app *v1alpha1.Application) bool {
		return app.Spec.Type == "store" && app.Status.ObservedGeneration == app.Generation
	})

	assert.EqualValues(t, 2, app.Generation, "what is applied again changes nothing")
	described := kubectl("", "describe", resource, "shop")
	for _, part := range []string{"store", "Components Ready:", "1/1", "Conditions:", "ConfigMap/settings"} {
		assert.Contains(t, described, part)
	}
	assert.Contains(t, kubectl("", "delete", resource, "shop"), `"shop" deleted`)
	assert.Empty(t, kubectl("", "get", resource, "-o", "name"))
}
