package kubernetescluster_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// K69: the status of a cluster includes that of its installations.
func TestKubernetesCluster_installationsInShort(t *testing.T) {
	h := newHub(t, options{})
	h.add("eu-1", userCluster(t).Kubeconfig())
	h.until("eu-1", isReady, "it is engaged")
	user, ns := newClient(t, userCluster(t).RESTConfig()), userCluster(t).Namespace(t)

	b := install(t, user, ns, "b")
	a := install(t, user, ns, "a")
	kc := h.until("eu-1", func(kc *v1alpha1.KubernetesCluster) bool { return kc.Status.InstallationCount == 2 }, "both are seen")
	assert.Equal(t, []v1alpha1.InstallationSummary{
		{Namespace: ns, Name: "a", Definition: "web", Version: "1.0.0", Ready: metav1.ConditionUnknown},
		{Namespace: ns, Name: "b", Definition: "web", Version: "1.0.0", Ready: metav1.ConditionUnknown},
	}, kc.Status.Installations)

	a.Status.Application = &v1alpha1.ResolvedApplication{Name: "web", Version: "0.9.0", Method: v1alpha1.MethodHelm, Namespace: ns}
	meta.SetStatusCondition(&a.Status.Conditions, metav1.Condition{Type: v1alpha1.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Succeeded"})
	require.NoError(t, user.Status().Update(t.Context(), a))
	kc = h.until("eu-1", func(kc *v1alpha1.KubernetesCluster) bool {
		return kc.Status.Installations[0].Ready == metav1.ConditionTrue
	}, "its status is seen")
	assert.Equal(t, "0.9.0", kc.Status.Installations[0].Version, "what is installed, rather than what is asked for")

	require.NoError(t, user.Delete(t.Context(), a))
	require.NoError(t, user.Delete(t.Context(), b))
	h.until("eu-1", func(kc *v1alpha1.KubernetesCluster) bool {
		return kc.Status.InstallationCount == 0 && len(kc.Status.Installations) == 0
	}, "both are gone")
}

// A cluster that is being filled is not written down installation by installation.
func TestKubernetesCluster_gathersChanges(t *testing.T) {
	h := newHub(t, options{})
	h.add("eu-1", userCluster(t).Kubeconfig())
	h.until("eu-1", isReady, "it is engaged")
	user, ns := newClient(t, userCluster(t).RESTConfig()), userCluster(t).Namespace(t)
	writes := h.writes("eu-1")

	const many = 60
	began := time.Now()
	for i := range many {
		install(t, user, ns, fmt.Sprintf("i-%d", i))
	}
	h.until("eu-1", func(kc *v1alpha1.KubernetesCluster) bool { return kc.Status.InstallationCount == many }, "all are seen")
	most := 2 + int(time.Since(began)/time.Second)
	assert.LessOrEqual(t, len(writes()), most, "one for each time that changes are gathered")
	require.NoError(t, user.DeleteAllOf(t.Context(), &v1alpha1.ApplicationInstallation{}, inNamespace(ns)))
	h.until("eu-1", func(kc *v1alpha1.KubernetesCluster) bool { return kc.Status.InstallationCount == 0 }, "all are gone")
}

// When nothing changes, nothing is asked and nothing is written; CRDs that are up to date
// are not applied again.
func TestKubernetesCluster_requestsWhenNothingChanged(t *testing.T) {
	h := newHub(t, options{})
	config, err := userCluster(t).AddUser("quiet", "system:masters")
	require.NoError(t, err)
	kubeconfig, err := env.Kubeconfig("user", config)
	require.NoError(t, err)
	h.add("eu-1", kubeconfig)
	h.until("eu-1", isReady, "it is engaged")

	h.change("eu-1", func(kc *v1alpha1.KubernetesCluster) { kc.Spec.Paused = true })
	h.until("eu-1", reason(v1alpha1.SuspendedReason), "it is paused")
	since, err := userCluster(t).AuditMark(t.Context())
	require.NoError(t, err)
	h.change("eu-1", func(kc *v1alpha1.KubernetesCluster) { kc.Spec.Paused = false })
	h.until("eu-1", isReady, "it is engaged again")
	requests, err := userCluster(t).Requests(t.Context(), since, env.ByUser("quiet"))
	require.NoError(t, err)
	for _, r := range requests {
		assert.Contains(t, []string{"get", "list", "watch"}, r.Verb, "%s %s", r.Verb, r.URI)
	}

	writes := h.writes("eu-1")
	h.change("eu-1", func(kc *v1alpha1.KubernetesCluster) {
		kc.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: "now"}
	})
	kc := h.until("eu-1", func(kc *v1alpha1.KubernetesCluster) bool { return kc.Status.LastHandledReconcileAt == "now" }, "a forced pass")
	assert.True(t, isReady(kc))
	assert.ElementsMatch(t, []string{"patch ", "patch status"}, writes(), "the annotation by us, and one status by the controller")
}

// writes returns what tells the writes of a KubernetesCluster from then on that were accepted, as
// verb and subresource.
func (h *hub) writes(name string) func() []string {
	h.t.Helper()
	since, err := hubCluster(h.t).AuditMark(h.t.Context())
	require.NoError(h.t, err)
	return func() []string {
		h.t.Helper()
		got, err := hubCluster(h.t).Requests(h.t.Context(), since, env.Writes, env.Accepted, func(r env.Request) bool {
			return r.Resource == "kubernetesclusters" && r.Name == name && r.Namespace == h.ns
		})
		require.NoError(h.t, err)
		var list []string
		for _, r := range got {
			list = append(list, r.Verb+" "+r.Subresource)
		}
		return list
	}
}
