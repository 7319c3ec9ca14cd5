package reconcile

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var panicsTotal = prometheus.NewCounter(prometheus.CounterOpts{
	Name: "waybill_job_panics_total", Help: "Jobs that panicked; each is logged with its stack and was tried again.",
})

// registerMetrics registers the series of this package, once per process.
var registerMetrics = sync.OnceFunc(func() { metrics.Registry.MustRegister(panicsTotal) })
