package applicationdefinition

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// C47: users are not advised to delete a cluster that is paused.
func TestAway(t *testing.T) {
	used := []v1alpha1.VersionUsage{{Version: "1.0.0", Count: 1, Installations: []string{"team/berlin/shop/web"}}}
	cluster := func(paused, reachable bool) []v1alpha1.KubernetesCluster {
		return []v1alpha1.KubernetesCluster{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "berlin"},
			Spec:       v1alpha1.KubernetesClusterSpec{Paused: paused},
			Status:     v1alpha1.KubernetesClusterStatus{Reachable: reachable},
		}}
	}
	assert.Empty(t, away(used, cluster(false, true)))
	assert.Equal(t, " (cluster team/berlin is not reachable: if it is lost for good, delete its KubernetesCluster)", away(used, cluster(false, false)))
	assert.Equal(t, " (cluster team/berlin is paused: this is its last known state)", away(used, cluster(true, false)))
	assert.Empty(t, away(nil, cluster(true, false)))
}
