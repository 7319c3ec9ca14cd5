package gitsync_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

func TestGitSync_seriesFollowTheStatus(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{"a.yaml": configMap("a", "x")})
	gs := hub.AwaitReady(w.World, w.sync(nil))
	series := map[string]string{"namespace": gs.Namespace, "name": gs.Name}
	w.AwaitMetric("waybill_gitsync_ready", series, 1)
	w.AwaitMetric("waybill_gitsync_objects", series, 1)

	w.commit(map[string]string{"b.yaml": "a: ["})
	hub.Reconcile(w.World, gs)
	w.AwaitMetric("waybill_gitsync_ready", series, 0)
	w.AwaitMetric("waybill_gitsync_problems", series, 1)

	hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) { gs.Spec.Suspend = true })
	w.AwaitNoMetric("waybill_gitsync_ready", series)
	hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) { gs.Spec.Suspend = false })
	w.AwaitMetric("waybill_gitsync_ready", series, 0)

	require.NoError(t, w.Client.Delete(t.Context(), gs))
	w.AwaitGone(&corev1.ConfigMap{}, "a")
	for _, name := range []string{"waybill_gitsync_ready", "waybill_gitsync_objects", "waybill_gitsync_problems", "waybill_gitsync_failures_total"} {
		w.AwaitNoMetric(name, series)
	}
}
