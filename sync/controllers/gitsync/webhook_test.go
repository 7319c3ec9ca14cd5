package gitsync_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// admission registers a webhook, with failurePolicy Fail, that lets every ConfigMap of the
// test's namespace pass, and returns the gate in front of it.
func (w *world) admission() *env.Gate {
	w.T.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if !assert.NoError(w.T, json.NewDecoder(r.Body).Decode(review)) {
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		assert.NoError(w.T, json.NewEncoder(rw).Encode(review))
	}))
	w.T.Cleanup(server.Close)
	gate, err := env.NewGate(server.Listener.Addr().String())
	require.NoError(w.T, err)
	w.T.Cleanup(gate.Close)
	w.Create(&admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: named(w.Namespace),
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "configmaps.example.com",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL:      ptr.To("https://" + gate.Address()),
				CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.Namespace}},
			FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	})
	return gate
}

// C32: while a webhook that everything has to pass is down, what it admits waits, what it does
// not is applied, and all of it is there when it is back: nobody has to ask.
func TestGitSync_waitsForAWebhookThatIsDown(t *testing.T) {
	w := newWorld(t)
	gate := w.admission()
	gate.Shut()
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
