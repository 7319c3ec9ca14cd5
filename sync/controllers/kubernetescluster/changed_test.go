package kubernetescluster_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
)

const elsewhere = "00000000-0000-0000-0000-00000000cafe"

// C45, C38: a kubeconfig that leads to another cluster than before is used for neither, until it is
// corrected or the change is accepted; a restart changes nothing in that.
func TestKubernetesCluster_kubeconfigLeadsElsewhere(t *testing.T) {
	cases := map[string]struct {
		reason string
		// first and later are kubeconfigs; uid is what the later one leads to.
		kubeconfigs func(t *testing.T) (first, later []byte, uid string)
	}{
		"AnotherServer": {
			reason: "the Secret has the kubeconfig of another cluster",
			kubeconfigs: func(t *testing.T) (first, later []byte, uid string) {
				return userCluster(t).Kubeconfig(), hubCluster(t).Kubeconfig(), kubeSystemUID(t, hubCluster(t))
			},
		},
		"RenewedCredentials": {
			reason: "the same server shows another cluster to other credentials",
			kubeconfigs: func(t *testing.T) (first, later []byte, uid string) {
				p := pretending(t, userCluster(t), elsewhere)
				p.lieTo = "second"
				return p.kubeconfig, bytes.ReplaceAll(p.kubeconfig, []byte("token: first"), []byte("token: second")), elsewhere
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, options{})
			first, later, uid := tc.kubeconfigs(t)
			was := kubeSystemUID(t, userCluster(t))
			h.add("berlin", first)
			kc := h.until("berlin", drives, "it is engaged")
			require.NotNil(t, kc.Status.BoundAt)
			c := h.engaged("berlin")

			h.secret("berlin", map[string][]byte{"value": later})
			refused := func(when string) *v1alpha1.KubernetesCluster {
				kc := h.until("berlin", func(kc *v1alpha1.KubernetesCluster) bool {
					state, _ := h.registry.State(h.key("berlin"))
					return state.Contacted && reason(v1alpha1.ClusterChangedReason)(kc)
				}, when+": "+tc.reason)
				_, err := h.registry.Get(h.key("berlin"))
				require.ErrorIs(t, err, cluster.ErrNotEngaged, "nothing is delivered")
				return kc
			}
			kc = refused("at once")
			require.Error(t, c.Context().Err())
			assert.Equal(t, "the kubeconfig leads to the cluster with UID "+uid+", but this KubernetesCluster is bound to the one with UID "+was+
				", and nothing is done in either: restore the kubeconfig; or, if the change is intended, set the annotation apps.waybill.dev/accept-cluster-uid to the new UID",
				condition(kc, v1alpha1.ReadyCondition).Message)
			assert.Equal(t, metav1.ConditionTrue, condition(kc, v1alpha1.StalledCondition).Status, "a person has to act")
			assert.Equal(t, v1alpha1.ClusterChangedReason, condition(kc, v1alpha1.ClusterReachableCondition).Reason)
			assert.False(t, kc.Status.Reachable)
			assert.Equal(t, was, kc.Status.UID, "it stays bound")
			h.restart()
			refused("after a restart")

			h.secret("berlin", map[string][]byte{"value": first})
			kc = h.until("berlin", drives, "the kubeconfig is restored")
			assert.Equal(t, was, kc.Status.UID)
			h.secret("berlin", map[string][]byte{"value": later})
			refused("once more")
			h.change("berlin", func(kc *v1alpha1.KubernetesCluster) {
				kc.Annotations = map[string]string{v1alpha1.AcceptClusterUIDAnnotation: was}
			})
			refused("the annotation names another UID")
			before := h.get("berlin").Status.BoundAt
			h.change("berlin", func(kc *v1alpha1.KubernetesCluster) { kc.Annotations[v1alpha1.AcceptClusterUIDAnnotation] = uid })
			kc = h.until("berlin", drives, "the change is accepted")
			assert.Equal(t, uid, kc.Status.UID)
			assert.True(t, before.Before(kc.Status.BoundAt))
			h.secret("berlin", map[string][]byte{"value": first})
			h.until("berlin", reason(v1alpha1.ClusterChangedReason), "the way back is a change as well")
		})
	}
}

// C38: a KubernetesCluster that is removed leaves the cluster alone that its kubeconfig leads to by
// mistake.
func TestKubernetesCluster_abandonedWhileItLeadsElsewhere(t *testing.T) {
	h := newHub(t, options{})
	h.add("berlin", hubCluster(t).Kubeconfig())
	h.until("berlin", drives, "it is engaged")
	user := newClient(t, userCluster(t).RESTConfig())
	h.add("dublin", userCluster(t).Kubeconfig())
	h.until("dublin", drives, "it is engaged")
	copied(t, user, "of-dublin", hubID)

	h.secret("berlin", map[string][]byte{"value": userCluster(t).Kubeconfig()})
	h.until("berlin", reason(v1alpha1.ClusterChangedReason), "it leads to dublin")
	require.NoError(t, h.Delete(t.Context(), h.get("berlin")))
	h.until("berlin", func(kc *v1alpha1.KubernetesCluster) bool {
		return reason(v1alpha1.ClusterChangedReason)(kc) && !kc.DeletionTimestamp.IsZero()
	}, "nothing can be taken out")
	h.change("berlin", func(kc *v1alpha1.KubernetesCluster) { kc.Spec.OnDelete = v1alpha1.DeleteAbandon })
	h.gone("berlin")
	assert.True(t, exists(t, user, "of-dublin"))
	h.until("dublin", drives, "it goes on")
}
