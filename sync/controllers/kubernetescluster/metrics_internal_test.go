package kubernetescluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// A paused cluster is not one that does not answer.
func TestObserveMetrics_paused(t *testing.T) {
	kc := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "metrics", Name: "berlin"}}
	observeMetrics(kc)
	assert.True(t, reachableGauge.DeleteLabelValues("metrics", "berlin"), "it does not answer")
	observeMetrics(kc)
	kc.Spec.Paused = true
	observeMetrics(kc)
	assert.False(t, reachableGauge.DeleteLabelValues("metrics", "berlin"), "there is a series that says that it does not answer")
}
