package kubernetescluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "waybill.dev/waybill/api/v1alpha1"
)

// C45: two KubernetesClusters of one cluster do not drive it twice; the older one does. When
// that goes, the cluster is handed over as it is.
func TestKubernetesCluster_twiceTheSame(t *testing.T) {
	h := newHub(t, options{})
	h.add("a-first", userCluster(t).Kubeconfig())
	h.until("a-first", isReady, "the first is engaged")
	user := newClient(t, userCluster(t).RESTConfig())
	inst := install(t, user, userCluster(t).Namespace(t), "kept")

	h.add("b-second", userCluster(t).Kubeconfig())
	kc := h.until("b-second", reason(v1alpha1.DuplicateClusterReason), "the second is kept out")
	assert.Equal(t, "KubernetesCluster "+h.key("a-first").String()+" is older and leads to the same cluster: delete one of the two",
		condition(kc, v1alpha1.ReadyCondition).Message)
	assert.Equal(t, metav1.ConditionTrue, condition(kc, v1alpha1.StalledCondition).Status)
	_, err := h.registry.Get(h.key("b-second"))
	require.Error(t, err)

	require.NoError(t, h.Delete(t.Context(), h.get("a-first")))
	h.gone("a-first")
	h.until("b-second", isReady, "the second takes over")
	assert.EqualValues(t, 1, h.until("b-second", func(kc *v1alpha1.KubernetesCluster) bool {
		return kc.Status.InstallationCount > 0
	}, "it sees what the first saw").Status.InstallationCount)
	require.NoError(t, user.Delete(t.Context(), inst))
}

// The younger of the two can go at any time.
func TestKubernetesCluster_duplicateIsDeleted(t *testing.T) {
	h := newHub(t, options{})
	h.add("a-first", userCluster(t).Kubeconfig())
	h.until("a-first", isReady, "the first is engaged")
	user := newClient(t, userCluster(t).RESTConfig())
	inst := install(t, user, userCluster(t).Namespace(t), "kept")
	h.add("b-second", userCluster(t).Kubeconfig())
	h.until("b-second", reason(v1alpha1.DuplicateClusterReason), "the second is kept out")
	require.NoError(t, h.Delete(t.Context(), h.get("b-second")))
	h.gone("b-second")
	h.until("a-first", isReady, "the first goes on")
	require.NoError(t, user.Delete(t.Context(), inst))
}
