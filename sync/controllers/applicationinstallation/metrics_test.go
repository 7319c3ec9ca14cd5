package applicationinstallation_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

const readySeries = "waybill_applicationinstallation_ready"

func (w *world) series(inst string) map[string]string {
	return map[string]string{"cluster": local.String(), "namespace": w.Namespace, "name": inst}
}

// A series goes when its installation does, also where a finalizer is taken off by hand.
func TestInstallation_seriesGoesWithoutAnUninstall(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	w.AwaitMetric(readySeries, w.series("web"), 1)
	app := &v1alpha1.Application{ObjectMeta: objectMeta("web")}
	app.Namespace = w.Namespace
	hub.Change(w.World, app, func(a *v1alpha1.Application) { a.Finalizers = append(a.Finalizers, "example.com/hold") })
	require.NoError(t, w.Client.Delete(t.Context(), inst))
	hub.AwaitReason(w.World, inst, v1alpha1.DeletingReason)

	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Finalizers = nil })
	w.AwaitGone(inst, "web")
	w.AwaitNoMetric(readySeries, w.series("web"))
	hub.Change(w.World, app, func(a *v1alpha1.Application) { a.Finalizers = nil })
}

// A series goes when its cluster does, and is back with it.
func TestInstallation_seriesGoesWithItsCluster(t *testing.T) {
	w := newWorld(t)
	w.define(nil)
	hub.AwaitReady(w.World, w.install(nil))
	w.AwaitMetric(readySeries, w.series("web"), 1)
	ensure := func() { shared.process.Clusters.Ensure(local, "local", nil) }
	t.Cleanup(ensure) // other tests use the cluster, too
	shared.process.Clusters.Remove(local)
	w.AwaitNoMetric(readySeries, w.series("web"))
	ensure()
	w.AwaitMetric(readySeries, w.series("web"), 1)
}
