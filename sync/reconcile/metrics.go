package reconcile

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var panicsTotal = promauto.With(metrics.Registry).NewCounter(prometheus.CounterOpts{
	Name: "waybill_job_panics_total", Help: "Jobs that panicked; each is logged with its stack and was tried again.",
})
