package kubernetescluster_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// yields says whether a KubernetesCluster is ready and drives nothing.
func yields(kc *v1alpha1.KubernetesCluster) bool {
	return isReady(kc) && condition(kc, v1alpha1.ReadyCondition).Message != "the cluster is connected, Kubernetes "+kc.Status.Version
}

func drives(kc *v1alpha1.KubernetesCluster) bool { return isReady(kc) && !yields(kc) }

// C45: of two KubernetesClusters of one cluster the older drives it; both can be delivered
// to. When the older goes, the cluster is handed over as it is.
func TestKubernetesCluster_twiceTheSame(t *testing.T) {
	h := newHub(t, options{})
	h.add("a-first", userCluster(t).Kubeconfig())
	h.until("a-first", drives, "the first is engaged")
	user := newClient(t, userCluster(t).RESTConfig())
	inst := install(t, user, userCluster(t).Namespace(t), "kept")
	copied(t, user, "handed-over", hubID)

	h.add("b-second", userCluster(t).Kubeconfig())
	kc := h.until("b-second", yields, "the second does not drive it")
	assert.Equal(t, "the cluster is connected, Kubernetes "+kc.Status.Version+"; GitSyncs are delivered, and nothing is installed: "+
		"KubernetesCluster "+h.key("a-first").String()+" leads to the same cluster and comes first", condition(kc, v1alpha1.ReadyCondition).Message)
	c, err := h.registry.Get(h.key("b-second"))
	require.NoError(t, err)
	require.NoError(t, c.Client().List(t.Context(), &corev1.NamespaceList{}))
	h.until("a-first", func(kc *v1alpha1.KubernetesCluster) bool { return kc.Status.InstallationCount == 1 }, "the first sees it")
	assert.Zero(t, h.get("b-second").Status.InstallationCount, "nothing is counted twice")

	require.NoError(t, h.Delete(t.Context(), h.get("a-first")))
	h.gone("a-first")
	h.until("b-second", func(kc *v1alpha1.KubernetesCluster) bool { return drives(kc) && kc.Status.InstallationCount == 1 },
		"the second takes over")
	assert.True(t, exists(t, user, "handed-over"))
	require.NoError(t, user.Delete(t.Context(), inst))
}

// The younger of the two can go at any time, with nothing but what is delivered by its name.
func TestKubernetesCluster_youngerIsDeleted(t *testing.T) {
	h := newHub(t, options{})
	h.add("a-first", userCluster(t).Kubeconfig())
	h.until("a-first", drives, "the first is engaged")
	user := newClient(t, userCluster(t).RESTConfig())
	inst := install(t, user, userCluster(t).Namespace(t), "kept")
	h.add("b-second", userCluster(t).Kubeconfig())
	h.until("b-second", yields, "the second does not drive it")
	gs := h.delivering("apps", "b-second")

	require.NoError(t, h.Delete(t.Context(), h.get("b-second")))
	h.until("b-second", reason(v1alpha1.InUseReason), "the GitSync holds it")
	h.left(gs)
	h.gone("b-second")
	h.until("a-first", drives, "the first goes on")
	require.NoError(t, user.Delete(t.Context(), inst))
}

// C45: a team that was there before gives way to the operators of Waybill, and does not come back
// before them by being older.
func TestKubernetesCluster_platformComesFirst(t *testing.T) {
	h := newHub(t, options{})
	team := &hub{Client: h.Client, t: t, ns: hubCluster(t).Namespace(t), registry: h.registry}
	t.Cleanup(team.clear)
	team.add("a-first", userCluster(t).Kubeconfig(), func(kc *v1alpha1.KubernetesCluster) { kc.Labels[label] = h.ns })
	team.until("a-first", drives, "there is no other yet")
	h.add("b-second", userCluster(t).Kubeconfig())
	h.until("b-second", drives, "it is of the system namespace")
	kc := team.until("a-first", yields, "it gives way")
	assert.Contains(t, condition(kc, v1alpha1.ReadyCondition).Message, "KubernetesCluster "+h.key("b-second").String()+" leads to the same cluster and comes first")
	require.NoError(t, h.Delete(t.Context(), h.get("b-second")))
	h.gone("b-second")
	team.until("a-first", drives, "it takes over")
}
