package webhooks

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/webhooks/intake"
)

// screened is the admission of KubernetesApplications, of which a test sees what is asked and
// decoded.
type screened struct {
	validator admission.Handler
	defaulter admission.Handler
	decoded   *intake.Budget

	asked, read atomic.Int64
}

// counted counts what is decoded.
type counted struct {
	admission.Decoder
	read *atomic.Int64
}

func (c counted) DecodeRaw(raw runtime.RawExtension, into runtime.Object) error {
	c.read.Add(1)
	return c.Decoder.DecodeRaw(raw, into)
}

// screenApplications answers users who hold every right, or none.
func screenApplications(t *testing.T, mayUse bool) *screened {
	t.Helper()
	s := &screened{decoded: intake.NewDecoded()}
	client := fake.NewClientset()
	client.PrependReactor("create", "subjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		s.asked.Add(1)
		return true, &authorizationv1.SubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: mayUse}}, nil
	})
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	reviews := &access{reviews: client.AuthorizationV1().SubjectAccessReviews()}
	r := &kubernetesApplications{access: reviews, secrets: &propagation{}}
	read := reader[*v1alpha1.KubernetesApplication]{
		decoder: counted{admission.NewDecoder(scheme), &s.read}, empty: func() *v1alpha1.KubernetesApplication { return &v1alpha1.KubernetesApplication{} },
	}
	before := &screen{access: reviews, decoded: s.decoded}
	s.validator = &validator[*v1alpha1.KubernetesApplication]{kind: v1alpha1.KubernetesApplicationKind, rules: r, screen: before, reader: read}
	s.defaulter = &defaulter[*v1alpha1.KubernetesApplication]{kind: v1alpha1.KubernetesApplicationKind, defaults: r, screen: before, reader: read}
	return s
}

// application is one with that content in a template.
func application(t *testing.T, content string) []byte {
	t.Helper()
	app := &v1alpha1.KubernetesApplication{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KubernetesApplicationKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop"},
	}
	template := v1alpha1.ResourceTemplate{Metadata: v1alpha1.ResourceTemplateMetadata{Name: "a"}}
	require.NoError(t, json.Unmarshal([]byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "x": `+content+`}`), &template.Spec.Template))
	app.Spec.ClusterSelector, app.Spec.ResourceTemplates = &metav1.LabelSelector{}, []v1alpha1.ResourceTemplate{template}
	raw, err := json.Marshal(app)
	require.NoError(t, err)
	return raw
}

func applicationRequest(operation admissionv1.Operation, object, old []byte) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Kind:      metav1.GroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KubernetesApplicationKind)),
		Namespace: "team", Name: "shop", Operation: operation,
		Object: runtime.RawExtension{Raw: object}, OldObject: runtime.RawExtension{Raw: old},
	}}
}

// What a user may not write, and what is too large, is not decoded.
func TestScreen_decidesBeforeAnythingIsDecoded(t *testing.T) {
	normal := application(t, `{}`)
	bomb := application(t, `[`+strings.Repeat(`{},`, 333_333)+`{}]`)
	const (
		noRight  = `kubernetesapplications.apps.waybill.dev "shop" is forbidden: user "" may not use kubernetesclusters.apps.waybill.dev in namespace "team" (it is applied to a cluster with full rights)`
		tooLarge = `KubernetesApplication "shop" is too large: the JSON text contains more than 200000 values`
	)
	for name, tc := range map[string]struct {
		reason      string
		mayUse      bool
		operation   admissionv1.Operation
		object, old []byte
		code        int32
		says        string
		read        int64
	}{
		"normal":         {"it is decoded once", true, admissionv1.Create, normal, nil, http.StatusOK, "", 1},
		"no right":       {"whatever is in it", false, admissionv1.Create, normal, nil, http.StatusForbidden, noRight, 0},
		"no right, bomb": {"the right comes first", false, admissionv1.Create, bomb, nil, http.StatusForbidden, noRight, 0},
		"bomb":           {"who has the right may not fill the memory, either", true, admissionv1.Create, bomb, nil, http.StatusRequestEntityTooLarge, tooLarge, 0},
		"becomes a bomb": {"an update is the same", true, admissionv1.Update, bomb, normal, http.StatusRequestEntityTooLarge, tooLarge, 0},
		"was a bomb":     {"what is too large can be made smaller", true, admissionv1.Update, normal, bomb, http.StatusOK, "", 2},
		"labels":         {"an update that leaves the spec alone takes no right", false, admissionv1.Update, normal, normal, http.StatusOK, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			for which, answer := range map[string]func(*screened) admission.Handler{
				"validation": func(s *screened) admission.Handler { return s.validator },
				"defaulting": func(s *screened) admission.Handler { return s.defaulter },
			} {
				s := screenApplications(t, tc.mayUse)
				wh := &admission.Webhook{Handler: answer(s)}
				got := wh.Handle(t.Context(), applicationRequest(tc.operation, tc.object, tc.old))
				require.NotNil(t, got.Result, which)
				assert.Equal(t, tc.code, got.Result.Code, "%s: %s: %s", which, tc.reason, got.Result.Message)
				assert.Equal(t, tc.code == http.StatusOK, got.Allowed, "%s: %s", which, tc.reason)
				assert.Contains(t, got.Result.Message, tc.says, "%s: %s", which, tc.reason)
				assert.Equal(t, tc.read, s.read.Load(), "%s: %s", which, tc.reason)
				assert.LessOrEqual(t, s.asked.Load(), int64(1), "%s: a right is asked for once", which)
			}
		})
	}
}

// A deletion is never held up by the size of what is deleted.
func TestScreen_letsWhatIsLargeBeDeleted(t *testing.T) {
	s := screenApplications(t, false)
	bomb := application(t, `[`+strings.Repeat(`{},`, 333_333)+`{}]`)
	got := s.validator.Handle(t.Context(), applicationRequest(admissionv1.Delete, nil, bomb))
	assert.True(t, got.Allowed, got.Result)
}

// Where there is no memory in time, the client is asked to retry.
func TestScreen_tellsThatItIsBusy(t *testing.T) {
	s := screenApplications(t, true)
	release, err := s.decoded.Acquire(t.Context(), 1<<40)
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	request := applicationRequest(admissionv1.Update, application(t, `{}`), application(t, `{}`))
	for range 2 {
		got := s.validator.Handle(ended, request)
		assert.False(t, got.Allowed)
		assert.EqualValues(t, http.StatusTooManyRequests, got.Result.Code)
		assert.Equal(t, intake.ErrBusy.Error(), got.Result.Message)
	}
	release()
	assert.True(t, s.validator.Handle(t.Context(), request).Allowed)
	again, err := s.decoded.Acquire(ended, 1<<40)
	require.NoError(t, err, "what was reserved is given back")
	again()
}
