package bench

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/program"
)

// reviews is how many decisions are requested in each run.
const reviews = 1000

// webhookP99 measures decisions from memory: an edit of a definition with 20 versions.
func webhookP99(b *testing.B, s *results) {
	h := startHub(b, false)
	process := startWebhook(b, h)
	admission := h.admission(b)
	body := definitionReview(b)
	admission.review(b, body) // the first one opens the connection
	var took samples
	for b.Loop() {
		for range reviews {
			began := time.Now()
			admission.review(b, body)
			took.add(float64(time.Since(began).Microseconds()) / 1000)
		}
	}
	s.atMost("", took.percentile(99), "ms", 10)
	s.inform("p50", took.median(), "ms")
	s.rss(process)
}

func startWebhook(b *testing.B, h *hub, args ...string) waybill {
	b.Helper()
	bin, err := program.Build(b.Context(), program.Webhook)
	require.NoError(b, err)
	address, err := env.FreeAddress()
	require.NoError(b, err)
	process, err := program.Start(b.Context(), program.Options{
		Name: program.Webhook, Bin: bin, Kubeconfig: h.kubeconfigOf(b, webhookUser),
		Args: append([]string{"--listen=" + address, "--url=https://" + address}, args...),
	})
	require.NoError(b, err)
	return stopAfterRow(b, process)
}

// admissionClient sends reviews of definitions to where the API server sends them, in the same way.
type admissionClient struct {
	client *http.Client
	url    string
}

// admission reads from the API server how the validating webhook is registered.
func (h *hub) admission(b *testing.B) admissionClient {
	b.Helper()
	client, err := kubernetes.NewForConfig(h.RESTConfig())
	require.NoError(b, err)
	list, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(b.Context(), metav1.ListOptions{})
	require.NoError(b, err)
	for _, configuration := range list.Items {
		for _, webhook := range configuration.Webhooks {
			if !slices.ContainsFunc(webhook.Rules, aboutDefinitions) {
				continue
			}
			pool := x509.NewCertPool()
			require.True(b, pool.AppendCertsFromPEM(webhook.ClientConfig.CABundle))
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true}
			b.Cleanup(transport.CloseIdleConnections)
			return admissionClient{&http.Client{Transport: transport}, *webhook.ClientConfig.URL}
		}
	}
	require.Fail(b, "no validating webhook is registered for definitions")
	return admissionClient{}
}

func aboutDefinitions(r admissionregistrationv1.RuleWithOperations) bool {
	return slices.Contains(r.Resources, definitions.Resource) && slices.Contains(r.Operations, admissionregistrationv1.Update)
}

// review sends a review and fails unless it is allowed.
func (l admissionClient) review(b *testing.B, body []byte) {
	b.Helper()
	response, err := l.client.Post(l.url, "application/json", bytes.NewReader(body))
	require.NoError(b, err)
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	require.NoError(b, err)
	var review admissionv1.AdmissionReview
	require.NoError(b, json.Unmarshal(content, &review), string(content))
	require.NotNil(b, review.Response)
	require.True(b, review.Response.Allowed, review.Response.Result)
}

func definitionReview(b *testing.B) []byte {
	b.Helper()
	was := &v1alpha1.ApplicationDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ApplicationDefinitionKind},
		ObjectMeta: metav1.ObjectMeta{Name: definition, UID: types.UID("0"), Generation: 1},
		Spec:       v1alpha1.ApplicationDefinitionSpec{Method: v1alpha1.MethodHelm},
	}
	for i := range 20 {
		was.Spec.Versions = append(was.Spec.Versions, v1alpha1.ApplicationVersion{
			Version: fmt.Sprintf("1.%d.0", i),
			Template: &v1alpha1.ApplicationTemplate{Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{
				URL: "https://charts.example.com", ChartName: "app", ChartVersion: fmt.Sprintf("1.%d.0", i),
			}}},
		})
	}
	is := was.DeepCopy()
	is.Spec.Description = "edited"
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:         "1",
			Kind:        metav1.GroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationDefinitionKind)),
			Resource:    metav1.GroupVersionResource(definitions),
			RequestKind: &metav1.GroupVersionKind{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: v1alpha1.ApplicationDefinitionKind},
			Name:        definition, Operation: admissionv1.Update,
			UserInfo:  authenticationv1.UserInfo{Username: "platform", Groups: []string{"system:masters"}},
			Object:    runtime.RawExtension{Object: is},
			OldObject: runtime.RawExtension{Object: was},
		},
	}
	body, err := json.Marshal(review)
	require.NoError(b, err)
	return body
}
