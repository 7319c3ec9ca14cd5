package registration

import "github.com/prometheus/client_golang/prometheus"

var certificateExpiry = prometheus.NewGauge(prometheus.GaugeOpts{
	Name: "waybill_webhook_certificate_expiry_timestamp_seconds",
	Help: "When the serving certificate of this process ends, in seconds since 1970.",
})

// Metrics returns the collectors of this package.
func Metrics() []prometheus.Collector { return []prometheus.Collector{certificateExpiry} }
