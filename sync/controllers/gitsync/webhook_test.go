package gitsync_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// admission registers a webhook, with failurePolicy Fail, that lets those objects of a kind in the
// test's namespace pass that admit says, and returns the gate in front of it.
func (w *world) admission(group, version, resource string, admit func(*admissionv1.AdmissionRequest) bool) *env.Gate {
	w.T.Helper()
	return w.webhook(group, version, resource, func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{Allowed: admit(r)}
	})
}

// webhook does the same with the answers of a function.
func (w *world) webhook(group, version, resource string, answer func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) *env.Gate {
	w.T.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil { // the gate has closed, or the API server has given up
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = answer(review.Request)
		review.Response.UID = review.Request.UID
		assert.NoError(w.T, json.NewEncoder(rw).Encode(review))
	}))
	w.T.Cleanup(server.Close)
	gate, err := env.NewGate(server.Listener.Addr().String())
	require.NoError(w.T, err)
	w.T.Cleanup(gate.Close)
	w.Create(&admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: named(w.Namespace),
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: resource + ".example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      ptr.To("https://" + gate.Address()),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.Namespace}},
			FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	})
	return gate
}

// awaitRefused waits until the webhook, which is down, is asked: the API server notices a new one a
// moment after it was created.
func (w *world) awaitRefused() {
	w.T.Helper()
	require.True(w.T, w.Eventually(func() bool {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "probe"}}
		err := w.Client.Create(w.T.Context(), probe, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "failed calling webhook")
	}), "the webhook is not in force")
}

// C32: while a webhook that everything has to pass is down, what it admits waits, what it does
// not is applied, and all of it is there when it is back: no user has to request it.
func TestGitSync_waitsForAWebhookThatIsDown(t *testing.T) {
	w := newWorld(t)
	gate := w.admission("", "v1", "configmaps", func(*admissionv1.AdmissionRequest) bool { return true })
	gate.Shut()
	w.awaitRefused()
	w.commit(map[string]string{
		"a.yaml": configMap("a", "one"),
		"b.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: b}\n",
	})
	gs := w.sync(nil)
	message := hub.AwaitReason(w.World, gs, v1alpha1.ApplyFailedReason)
	assert.Contains(t, message, "a.yaml:1: ConfigMap "+w.Namespace+"/a: ")
	assert.Contains(t, message, `failed calling webhook "configmaps.example.com"`)
	assert.True(t, w.Exists(&corev1.ServiceAccount{}, "b"))

	require.NoError(t, gate.Open())
	w.AwaitThere(&corev1.ConfigMap{}, "a")
	hub.AwaitReady(w.World, gs)

	gate.Shut()
	w.remove("a.yaml")
	hub.Reconcile(w.World, gs)
	hub.AwaitReason(w.World, gs, v1alpha1.PruneFailedReason)
	assert.True(t, w.Exists(&corev1.ConfigMap{}, "a"), "a removal waits as well")
	require.NoError(t, gate.Open())
	w.AwaitGone(&corev1.ConfigMap{}, "a")
	hub.AwaitReady(w.World, gs)
}

// P11, C32: what failed in one cluster is tried again, although another, which was still at work
// then, never came to an end.
func TestGitSync_triesAgainWhenTheLastClusterAtWorkIsGone(t *testing.T) {
	w := newWorld(t)
	users := w.addHeldClusters(map[string]*hold{"slow": newHold(t, "configmaps/a")}, "quick", "slow")
	there := &world{World: users["quick"].World}
	there.Namespace = w.Namespace
	gate := there.admission("", "v1", "configmaps", func(*admissionv1.AdmissionRequest) bool { return true })
	gate.Shut()
	there.awaitRefused()
	w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "one")})
	gs := hub.Await(w.World, w.sync(in("all", "yes")), "it is not told what failed", func(gs *v1alpha1.GitSync) bool {
		return len(gs.Status.Clusters) == 2 && gs.Status.Clusters[0].Reason == v1alpha1.ApplyFailedReason
	})

	require.NoError(t, w.Client.Delete(t.Context(), w.cluster("slow")))
	require.NoError(t, gate.Open())
	w.awaitClusters(gs, "quick")
	assert.True(t, there.Exists(&corev1.ConfigMap{}, "a"))
}

// C34, C32: a deletion that waits for a lost cluster goes on in the others, also if it failed there.
func TestGitSync_deletionIsTriedAgainWhileAClusterIsLost(t *testing.T) {
	w := newWorld(t)
	users := w.addClusters("berlin", "lost")
	w.commit(map[string]string{"a.yaml": configMapIn(w.Namespace, "a", "one")})
	gs := hub.AwaitReady(w.World, w.sync(in("all", "yes")))
	there := &world{World: users["berlin"].World}
	there.Namespace = w.Namespace
	gate := there.admission("", "v1", "configmaps", func(*admissionv1.AdmissionRequest) bool { return true })
	gate.Shut()
	there.awaitRefused()
	users["lost"].gate.Shut()
	require.True(t, w.Eventually(func() bool { _, err := w.process.Clusters.Get(users["lost"].key); return err != nil }))

	require.NoError(t, w.Client.Delete(t.Context(), gs))
	hub.Await(w.World, gs, "it is not told what failed", func(gs *v1alpha1.GitSync) bool {
		message := conditions.GetMessage(gs, v1alpha1.ReadyCondition)
		return w.reasonNow(gs) == v1alpha1.ClusterUnreachableReason && strings.Contains(message, "lost") && strings.Contains(message, "failed calling webhook")
	})
	require.NoError(t, gate.Open())
	there.AwaitGone(&corev1.ConfigMap{}, "a")
	require.NoError(t, w.Client.Delete(t.Context(), w.cluster("lost")))
	w.AwaitGone(&v1alpha1.GitSync{}, gs.Name)
}
