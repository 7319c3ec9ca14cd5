package gitsync

import (
	"errors"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	v1alpha1 "waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

var (
	objectsGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_gitsync_objects", Help: "Objects in the inventory of a GitSync.",
	}, []string{"namespace", "name"})
	problemsGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_gitsync_problems", Help: "Objects of a GitSync that could not be delivered.",
	}, []string{"namespace", "name"})
	failuresTotal = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "waybill_gitsync_failures_total", Help: "Passes of a GitSync that failed, by reason.",
	}, []string{"namespace", "name", "reason"})
)

// registerMetrics registers the series of this package, once per process.
var registerMetrics = sync.OnceFunc(func() { metrics.Registry.MustRegister(objectsGauge, problemsGauge, failuresTotal) })

func observe(s *scope, err error) {
	labels := prometheus.Labels{"namespace": s.gs.Namespace, "name": s.gs.Name}
	objectsGauge.With(labels).Set(float64(len(s.session.inventory)))
	problemsGauge.With(labels).Set(float64(s.gs.Status.ProblemCount))
	var known *reconcile.Error
	if errors.As(err, &known) {
		failuresTotal.WithLabelValues(s.gs.Namespace, s.gs.Name, known.Reason).Inc()
	}
}

func forgetMetrics(gs *v1alpha1.GitSync) {
	labels := prometheus.Labels{"namespace": gs.Namespace, "name": gs.Name}
	objectsGauge.Delete(labels)
	problemsGauge.Delete(labels)
	failuresTotal.DeletePartialMatch(labels)
}
