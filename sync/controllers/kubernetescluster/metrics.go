package kubernetescluster

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"waybill.dev/waybill/api/v1alpha1"
)

var (
	reachableGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_kubernetescluster_reachable", Help: "Whether the API server of a KubernetesCluster answers (1) or not (0); none while it is paused.",
	}, []string{"namespace", "name"})
	installationsGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_kubernetescluster_installations", Help: "ApplicationInstallations in a KubernetesCluster.",
	}, []string{"namespace", "name"})
)

// observeMetrics exports the status of a KubernetesCluster after a reconciliation.
func observeMetrics(kc *v1alpha1.KubernetesCluster) {
	switch {
	case kc.Spec.Paused: // it is not checked
		reachableGauge.DeleteLabelValues(kc.Namespace, kc.Name)
	case kc.Status.Reachable:
		reachableGauge.WithLabelValues(kc.Namespace, kc.Name).Set(1)
	default:
		reachableGauge.WithLabelValues(kc.Namespace, kc.Name).Set(0)
	}
	installationsGauge.WithLabelValues(kc.Namespace, kc.Name).Set(float64(kc.Status.InstallationCount))
}

// forgetMetrics drops the series of a KubernetesCluster that is gone.
func forgetMetrics(key types.NamespacedName) {
	reachableGauge.DeleteLabelValues(key.Namespace, key.Name)
	installationsGauge.DeleteLabelValues(key.Namespace, key.Name)
}
