package inject

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The outcomes for an object, as the metrics name them.
const (
	injected   = "injected"   // made part of an Application
	released   = "released"   // an earlier injection is taken back
	relabelled = "relabelled" // only the part-of label was corrected
	warned     = "warned"     // left as it is, with a warning
	unchanged  = "unchanged"
	skipped    = "skipped" // not for us, or Applications are not read yet
	failed     = "failed"  // left as it is, because it cannot be read
)

var (
	outcomes = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "waybill_injection_outcomes_total",
		Help: "Objects processed by admission, by outcome (injected, released, relabelled, warned, unchanged, skipped, failed).",
	}, []string{"outcome"})

	duration = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "waybill_injection_duration_seconds",
		Help:    "Time that looking at an object took.",
		Buckets: []float64{.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1},
	})

	entries = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_injection_registered",
		Help: "What to register for injection: entries of the webhook configuration, resources and namespaces in them; namespaces is -1 where it is every one.",
	}, []string{"of"})
)

// Metrics are the collectors of this package.
func Metrics() []prometheus.Collector { return []prometheus.Collector{outcomes, duration, entries} }

// count is called once per object.
func count(start time.Time, outcome string) {
	outcomes.WithLabelValues(outcome).Inc()
	duration.Observe(time.Since(start).Seconds())
}
