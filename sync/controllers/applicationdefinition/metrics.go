package applicationdefinition

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"waybill.dev/waybill/api/v1alpha1"
)

var (
	copiesGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_applicationdefinition_copies", Help: "User clusters that hold a current copy of an ApplicationDefinition.",
	}, []string{"name"})
	installationsGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_applicationdefinition_installations", Help: "ApplicationInstallations that use an ApplicationDefinition, in all clusters.",
	}, []string{"name"})
)

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
