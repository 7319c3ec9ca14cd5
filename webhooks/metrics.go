package webhooks

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The decisions, as the metrics name them.
const (
	allowed = "allowed"
	refused = "refused"
	failed  = "failed" // no decision: a look-up got no answer
)

// operationDefault is the operation label of defaulting, whatever the operation of the request.
const operationDefault = "DEFAULT"

var (
	decisions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "waybill_admission_decisions_total",
		Help: "Admission decisions, by kind, operation and decision (allowed, refused, failed).",
	}, []string{"kind", "operation", "decision"})

	duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "waybill_admission_duration_seconds",
		Help:    "Time that an admission decision took, by kind and operation.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"kind", "operation"})
)

// register adds collectors to a registry. It keeps those that are already registered, which happens
// if this is not the first server of the process.
func register(registry prometheus.Registerer, collectors ...prometheus.Collector) error {
	for _, c := range collectors {
		if err := registry.Register(c); err != nil && !errors.As(err, new(prometheus.AlreadyRegisteredError)) {
			return err
		}
	}
	return nil
}

// count is called once per decision.
func count(kind, operation string, start time.Time, decision string) {
	decisions.WithLabelValues(kind, operation, decision).Inc()
	duration.WithLabelValues(kind, operation).Observe(time.Since(start).Seconds())
}

// decisionOf returns the decision that an error stands for.
func decisionOf(err error) string {
	switch {
	case err == nil:
		return allowed
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsConflict(err), apierrors.IsBadRequest(err),
		apierrors.IsRequestEntityTooLargeError(err):
		return refused
	}
	return failed
}
