package gitsync_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// P11, C34: clusters that are left at a time do not keep each other at work: what each of them
// waits for is told, and nothing is done until it has happened.
func TestGitSync_leavesSeveralClustersAtATime(t *testing.T) {
	cases := map[string]struct {
		// leave makes the GitSync leave its clusters; over returns when it has left them.
		leave func(*world, *v1alpha1.GitSync)
		over  func(*world, *v1alpha1.GitSync)
	}{
		"deleted": {
			leave: func(w *world, gs *v1alpha1.GitSync) { require.NoError(w.T, w.Client.Delete(w.T.Context(), gs)) },
			over:  func(w *world, gs *v1alpha1.GitSync) { w.AwaitGone(&v1alpha1.GitSync{}, gs.Name) },
		},
		"deselected": {
			leave: func(w *world, gs *v1alpha1.GitSync) {
				hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) { in("pool", "nowhere")(&gs.Spec) })
			},
			over: func(w *world, gs *v1alpha1.GitSync) {
				hub.AwaitReady(w.World, hub.Await(w.World, gs, "the clusters are left", func(gs *v1alpha1.GitSync) bool { return len(gs.Status.Clusters) == 0 }))
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			quick, slow := newHold(t, "configmaps/held"), newHold(t, "configmaps/held")
			quick.method, slow.method = http.MethodDelete, http.MethodDelete
			berlin := w.addHeldClusters(map[string]*hold{"quick": quick, "slow": slow}, "quick", "slow")["quick"]
			w.commit(map[string]string{"held.yaml": strings.Replace(configMapIn(w.Namespace, "held", "x"), "metadata:", "metadata:\n  finalizers: [example.com/hold]", 1)})
			gs := hub.AwaitReady(w.World, w.sync(in("all", "yes")))

			c.leave(w, gs)
			env.Receive(t, quick.asked, "the quick cluster is not left")
			env.Receive(t, slow.asked, "the slow cluster is not left")
			quick.release()
			held := &corev1.ConfigMap{}
			require.True(t, berlin.Eventually(func() bool {
				return berlin.ExistsIn(w.Namespace, held, "held") && !held.DeletionTimestamp.IsZero()
			}))
			slow.release()
			hub.Await(w.World, gs, "it is not told what is left", func(gs *v1alpha1.GitSync) bool {
				return strings.Contains(conditions.GetMessage(gs, v1alpha1.ReadyCondition), "waiting for")
			})

			held.Finalizers = nil
			require.NoError(t, berlin.Client.Update(t.Context(), held))
			c.over(w, gs)
		})
	}
}
