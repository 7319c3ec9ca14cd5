package kubernetesapplication

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"waybill.dev/waybill/api/v1alpha1"
)

var (
	desiredGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_kubernetesapplication_desired_resources", Help: "Resource templates of a KubernetesApplication.",
	}, []string{"namespace", "name"})
	submittedGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_kubernetesapplication_submitted_resources", Help: "Resource templates of a KubernetesApplication that its cluster holds.",
	}, []string{"namespace", "name"})
)

// observeMetrics exports what the status of a KubernetesApplication says after a pass.
func observeMetrics(app *v1alpha1.KubernetesApplication) {
	desiredGauge.WithLabelValues(app.Namespace, app.Name).Set(float64(app.Status.DesiredResources))
	submittedGauge.WithLabelValues(app.Namespace, app.Name).Set(float64(app.Status.SubmittedResources))
}

// forgetMetrics drops the series of a KubernetesApplication that is gone.
func forgetMetrics(key types.NamespacedName) {
	desiredGauge.DeleteLabelValues(key.Namespace, key.Name)
	submittedGauge.DeleteLabelValues(key.Namespace, key.Name)
}
