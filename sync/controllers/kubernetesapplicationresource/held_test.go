package kubernetesapplicationresource_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// held is a webhook of a user cluster that answers to no update of a Service before it is released.
type held struct {
	// entered has a word for each update that arrived, and lost for each that was not waited for.
	entered, lost chan struct{}
	letGo         func()
}

// hold has updates of Services in the namespace of a user wait.
func (u *user) hold() held {
	u.T.Helper()
	free := make(chan struct{})
	h := held{entered: make(chan struct{}, 1000), lost: make(chan struct{}, 1000), letGo: sync.OnceFunc(func() { close(free) })}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		h.entered <- struct{}{}
		select {
		case <-free:
		case <-r.Context().Done():
			h.lost <- struct{}{}
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		_ = json.NewEncoder(w).Encode(review) // a client that does not wait any more does not read it
	}))
	u.T.Cleanup(func() { h.letGo(); server.Close() })
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	u.Create(&admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: named(u.Namespace),
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:              "held.example.com",
			ClientConfig:      admissionregistrationv1.WebhookClientConfig{URL: new(server.URL), CABundle: authority},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: u.Namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"}},
			}},
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			TimeoutSeconds:          new(int32(30)),
			AdmissionReviewVersions: []string{"v1"},
		}},
	})
	return h
}

// W19: the status of an object is shown while an apply of it hangs, as behind a webhook.
func TestResource_showsTheStatusWhileAnApplyHangs(t *testing.T) {
	w := newWorld(t)
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.service("web"))))
	w.awaitRemote(kar, `{"loadBalancer":{}}`)
	h := w.berlin.hold()
	port := 80
	require.True(t, w.Eventually(func() bool { // a webhook takes a moment to count
		port++
		hub.Change(w.World, kar, func(k *v1alpha1.KubernetesApplicationResource) {
			k.Spec.Template = template(t, strings.Replace(w.berlin.service("web"), "port: 80", fmt.Sprint("port: ", port), 1))
		})
		select {
		case <-h.entered:
			return true
		case <-time.After(time.Second):
			return false
		}
	}))

	live := &corev1.Service{}
	require.True(t, w.berlin.Exists(live, "web"))
	live.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "example.com"}}
	require.NoError(t, w.berlin.Client.Status().Update(t.Context(), live))
	w.awaitRemote(kar, `{"loadBalancer":{"ingress":[{"hostname":"example.com"}]}}`)
	assert.Empty(t, h.lost, "it hangs no more")
	h.letGo()
	hub.AwaitReady(w.World, kar)
}
