package application

import (
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"waybill.dev/waybill/api/v1alpha1"
)

var readyGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
	Name: "waybill_application_ready", Help: "Whether an Application is ready (1) or not (0).",
}, []string{"namespace", "name"})

// observeMetrics exports the readiness of an Application after a pass.
func observeMetrics(app *v1alpha1.Application) {
	ready := 0.0
	if conditions.IsReady(app) {
		ready = 1
	}
	readyGauge.WithLabelValues(app.Namespace, app.Name).Set(ready)
}

// forgetMetrics deletes the series of an Application that is gone.
func forgetMetrics(key types.NamespacedName) { readyGauge.DeleteLabelValues(key.Namespace, key.Name) }
