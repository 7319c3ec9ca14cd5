package applicationdefinition

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"waybill.dev/waybill/api/v1alpha1"
)

var (
	copiesGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_applicationdefinition_copies", Help: "User clusters that hold a current copy of an ApplicationDefinition.",
	}, []string{"name"})
	installationsGauge = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_applicationdefinition_installations", Help: "ApplicationInstallations that use an ApplicationDefinition, in all clusters.",
	}, []string{"name"})
)

// registerMetrics registers the metrics of this package, once per process.
var registerMetrics = sync.OnceFunc(func() { metrics.Registry.MustRegister(copiesGauge, installationsGauge) })

// observeMetrics exports the status of a definition after a pass.
func observeMetrics(definition *v1alpha1.ApplicationDefinition) {
	_, count := users(definition.Status.UsedBy)
	copiesGauge.WithLabelValues(definition.Name).Set(float64(definition.Status.Clusters))
	installationsGauge.WithLabelValues(definition.Name).Set(float64(count))
}

// forgetMetrics drops the series of a definition that is gone.
func forgetMetrics(name string) {
	copiesGauge.DeleteLabelValues(name)
	installationsGauge.DeleteLabelValues(name)
}
