package intake

import "github.com/prometheus/client_golang/prometheus"

// The reasons why a request is turned away, as the metric names them.
const (
	reasonClient = "client" // it has no client certificate that is accepted
	reasonSize   = "size"   // its body is too large
	reasonBusy   = "busy"   // there was no room in time
	reasonBody   = "body"   // its body did not arrive
	reasonWeight = "weight" // it would decode into too much
)

var turnedAway = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "waybill_admission_turned_away_total",
	Help: "Requests to the webhook server that were not decoded, by reason (client, size, busy, body, weight).",
}, []string{"reason"})

// Metrics returns the collectors to register.
func Metrics() []prometheus.Collector { return []prometheus.Collector{turnedAway} }
