package kubernetesapplicationresource

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

var (
	submittedGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_kubernetesapplicationresource_submitted", Help: "Whether the cluster holds the object of a resource as templated (1) or not (0).",
	}, []string{"namespace", "name"})
	failuresTotal = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "waybill_kubernetesapplicationresource_failures_total", Help: "Passes of resources that failed, by reason.",
	}, []string{"namespace", "reason"})
)

// observeMetrics exports what the status of a resource says after a pass, and the error that the
// pass ended with.
func observeMetrics(kar *v1alpha1.KubernetesApplicationResource, err error) {
	submitted := 0.0
	if kar.Status.State == v1alpha1.StateSubmitted {
		submitted = 1
	}
	submittedGauge.WithLabelValues(kar.Namespace, kar.Name).Set(submitted)
	switch reason := reconcile.ReasonOf(err); reason {
	case "", v1alpha1.DeletingReason, v1alpha1.NotScheduledReason:
	default:
		failuresTotal.WithLabelValues(kar.Namespace, reason).Inc()
	}
}

// forgetMetrics drops the series of a resource that is gone.
func forgetMetrics(name types.NamespacedName) {
	submittedGauge.DeleteLabelValues(name.Namespace, name.Name)
}
