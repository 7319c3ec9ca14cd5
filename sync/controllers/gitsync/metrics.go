package gitsync

import (
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

var (
	readyGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_gitsync_ready", Help: "Whether a GitSync is ready (1) or not (0); none while it is suspended, or lacks nothing but what clusters are paused for.",
	}, []string{"namespace", "name"})
	objectsGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_gitsync_objects", Help: "Objects in the inventory of a GitSync.",
	}, []string{"namespace", "name"})
	problemsGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_gitsync_problems", Help: "Objects of a GitSync that could not be delivered.",
	}, []string{"namespace", "name"})
	failuresTotal = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "waybill_gitsync_failures_total", Help: "Passes of a GitSync that failed, by reason.",
	}, []string{"namespace", "name", "reason"})
)

// observeMetrics exports the status after a pass, and the error that the pass ended with.
func observeMetrics(s *scope, err error) {
	labels := prometheus.Labels{"namespace": s.gs.Namespace, "name": s.gs.Name}
	switch {
	case conditions.GetReason(s.gs, v1alpha1.ReadyCondition) == v1alpha1.SuspendedReason:
		readyGauge.Delete(labels)
	case conditions.IsReady(s.gs):
		readyGauge.With(labels).Set(1)
	default:
		readyGauge.With(labels).Set(0)
	}
	objectsGauge.With(labels).Set(float64(len(s.session.record.inventory)))
	problemsGauge.With(labels).Set(float64(s.gs.Status.ProblemCount))
	if reason := reconcile.ReasonOf(err); reason != "" {
		failuresTotal.WithLabelValues(s.gs.Namespace, s.gs.Name, reason).Inc()
	}
}

// forgetMetrics drops the series of a GitSync that is gone.
func forgetMetrics(gs *v1alpha1.GitSync) {
	labels := prometheus.Labels{"namespace": gs.Namespace, "name": gs.Name}
	readyGauge.Delete(labels)
	objectsGauge.Delete(labels)
	problemsGauge.Delete(labels)
	failuresTotal.DeletePartialMatch(labels)
}
