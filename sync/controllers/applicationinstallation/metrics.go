package applicationinstallation

import (
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/reconcile"
)

var (
	readyGauge = promauto.With(metrics.Registry).NewGaugeVec(prometheus.GaugeOpts{
		Name: "waybill_applicationinstallation_ready", Help: "Whether an installation is ready (1) or not (0).",
	}, []string{"cluster", "namespace", "name"})
	failuresTotal = promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
		Name: "waybill_applicationinstallation_failures_total", Help: "Passes of an installation that failed, by reason.",
	}, []string{"cluster", "namespace", "name", "reason"})
)

// observeMetrics exports whether an installation is ready after a pass, and counts the error that
// the pass ended with.
func observeMetrics(c *cluster.Cluster, inst *v1alpha1.ApplicationInstallation, err error) {
	ready := 0.0
	if conditions.IsReady(inst) {
		ready = 1
	}
	readyGauge.WithLabelValues(c.Name().String(), inst.Namespace, inst.Name).Set(ready)
	if reason := reconcile.ReasonOf(err); reason != "" {
		failuresTotal.WithLabelValues(c.Name().String(), inst.Namespace, inst.Name, reason).Inc()
	}
}

// forgetMetrics deletes the series of an installation that is gone.
func forgetMetrics(c *cluster.Cluster, name types.NamespacedName) {
	readyGauge.DeleteLabelValues(c.Name().String(), name.Namespace, name.Name)
	failuresTotal.DeletePartialMatch(prometheus.Labels{"cluster": c.Name().String(), "namespace": name.Namespace, "name": name.Name})
}

// forgetCluster deletes the series of all installations of a cluster.
func forgetCluster(c *cluster.Cluster) {
	of := prometheus.Labels{"cluster": c.Name().String()}
	readyGauge.DeletePartialMatch(of)
	failuresTotal.DeletePartialMatch(of)
}
