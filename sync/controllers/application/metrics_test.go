package application_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/hub"
)

func TestApplication_seriesFollowTheStatus(t *testing.T) {
	w := newWorld(t)
	app := shop(named("ConfigMap", "settings"))
	w.Create(app)
	series := map[string]string{"namespace": app.Namespace, "name": app.Name}
	w.AwaitMetric("waybill_application_ready", series, 0)
	w.Create(configMap(member("settings")))
	hub.AwaitReady(w.World, app)
	w.AwaitMetric("waybill_application_ready", series, 1)
	require.NoError(t, w.Client.Delete(t.Context(), app))
	w.AwaitNoMetric("waybill_application_ready", series)
}
