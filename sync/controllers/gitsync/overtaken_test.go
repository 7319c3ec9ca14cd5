package gitsync_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/source/git"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// hold keeps requests for one object from the API server until it is released.
type hold struct {
	path    string        // how the path of the requests ends
	method  string        // of the requests; empty for all
	asked   chan struct{} // gets a value when a request is held
	release func()
	open    chan struct{} // closed by release
}

// newHold returns a hold of the requests for an object, such as `configmaps/a`. It is released at
// the end of the test at the latest.
func newHold(t *testing.T, object string) *hold {
	h := &hold{path: "/" + object, asked: make(chan struct{}, 1), open: make(chan struct{})}
	h.release = sync.OnceFunc(func() { close(h.open) })
	t.Cleanup(h.release)
	return h
}

// wrap has the requests of a client pass the hold.
func (h *hold) wrap(next http.RoundTripper) http.RoundTripper { return &held{hold: h, next: next} }

// held is one transport whose requests pass a hold.
type held struct {
	*hold
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (h *held) RoundTrip(request *http.Request) (*http.Response, error) {
	if strings.HasSuffix(request.URL.Path, h.path) && (h.method == "" || h.method == request.Method) {
		select {
		case h.asked <- struct{}{}:
		default:
		}
		select {
		case <-h.open:
		case <-request.Context().Done():
			return nil, request.Context().Err()
		}
	}
	return h.next.RoundTrip(request)
}

// heldDelivery makes a GitSync deliver a.yaml to a cluster, and returns while the delivery is under
// way: what it makes is declared, and is not made before release is called.
func (w *world) heldDelivery() (gs *v1alpha1.GitSync, berlin *user, release func()) {
	w.T.Helper()
	held := newHold(w.T, "configmaps/a")
	berlin = w.addHeldClusters(map[string]*hold{"berlin": held}, "berlin")["berlin"]
	w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "one")})
	gs = w.sync(in("pool", "berlin"))
	env.Receive(w.T, held.asked, "nothing is delivered")
	require.NoError(w.T, w.Client.Get(w.T.Context(), client.ObjectKeyFromObject(gs), gs))
	require.NotNil(w.T, gs.Status.Inventory, "nothing is declared")
	require.EqualValues(w.T, 1, gs.Status.Inventory.Count)
	return gs, berlin, held.release
}

// C41, P9: what a delivery makes is taken out, although its end came when something else was wanted
// already.
func TestGitSync_deletedDuringADeliveryLeavesNothing(t *testing.T) {
	w := newWorld(t)
	gs, berlin, release := w.heldDelivery()
	require.NoError(t, w.Client.Delete(t.Context(), gs))
	w.AwaitSeen(w.process, gs)
	release()
	w.AwaitGone(&v1alpha1.GitSync{}, gs.Name)
	assert.False(t, berlin.ExistsIn(w.Namespace, &corev1.ConfigMap{}, "a"))
}

// C41, P11
func TestGitSync_deselectedDuringADeliveryLeavesNothing(t *testing.T) {
	w := newWorld(t)
	gs, berlin, release := w.heldDelivery()
	kc := &v1alpha1.KubernetesCluster{}
	require.NoError(t, w.Client.Get(t.Context(), berlin.key, kc))
	hub.Change(w.World, kc, func(k *v1alpha1.KubernetesCluster) { k.Labels["pool"] = "other" })
	w.AwaitSeen(w.process, kc)
	release()
	hub.Await(w.World, gs, "the cluster is not left", func(gs *v1alpha1.GitSync) bool {
		return len(gs.Status.Clusters) == 0 && gs.Status.ObservedGeneration == gs.Generation && gs.Status.Inventory.Count == 0
	})
	assert.False(t, berlin.ExistsIn(w.Namespace, &corev1.ConfigMap{}, "a"))
}

// awaitFetched waits until the controller has fetched a commit.
func (w *world) awaitFetched(commit string) {
	w.T.Helper()
	credentials, err := git.CredentialsFromSecret(map[string][]byte{"ca.crt": hub.Authority(w.T)})
	require.NoError(w.T, err)
	require.True(w.T, w.Eventually(func() bool {
		tree, err := w.process.Git.Cached(git.Repository{URL: w.repo.URL(), Credentials: credentials}, git.Revision{Commit: commit})
		if err != nil {
			return false
		}
		tree.Close()
		return true
	}), "%s is not fetched", commit)
}

// C41, P9: a commit takes out what the one before was about to make.
func TestGitSync_secondCommitDuringADeliveryPrunes(t *testing.T) {
	w := newWorld(t)
	gs, berlin, release := w.heldDelivery()
	w.commit(map[string]string{"b.yaml": configMapIn(w.Namespace, "b", "one")})
	second, err := w.repo.Delete(t.Context(), "a.yaml")
	require.NoError(t, err)
	hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) {
		metav1.SetMetaDataAnnotation(&gs.ObjectMeta, v1alpha1.ReconcileAtAnnotation, "now")
	})
	w.awaitFetched(second)
	release()
	hub.Await(w.World, gs, "the second commit is not delivered", func(gs *v1alpha1.GitSync) bool {
		return gs.Status.LastHandledReconcileAt == "now" && strings.HasSuffix(gs.Status.Revision, second)
	})
	assert.EqualValues(t, 1, hub.AwaitReady(w.World, gs).Status.Inventory.Count)
	assert.True(t, berlin.ExistsIn(w.Namespace, &corev1.ConfigMap{}, "b"))
	assert.False(t, berlin.ExistsIn(w.Namespace, &corev1.ConfigMap{}, "a"))
}

// C37: an account that is named during a delivery is the one that delivers.
func TestGitSync_accountThatIsNamedDuringADeliveryDelivers(t *testing.T) {
	w := newWorld(t)
	gs, _, release := w.heldDelivery()
	hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) { gs.Spec.ServiceAccountName = "nobody" })
	w.AwaitSeen(w.process, gs)
	release()
	assert.Contains(t, hub.AwaitReason(w.World, gs, v1alpha1.ApplyFailedReason), "system:serviceaccount:"+w.Namespace+":nobody")
}
