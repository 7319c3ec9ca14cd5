package inject

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/membership"
)

// answering is a handler that knows n Applications of namespace a: app-0, app-1 and so on.
func answering(t testing.TB, n int) *handler {
	t.Helper()
	a := &applications{changed: func() {}}
	for i := range n {
		name := fmt.Sprintf("app-%d", i)
		compiled, err := membership.Compile(&v1alpha1.Application{
			ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name},
			Spec: v1alpha1.ApplicationSpec{
				Selector:   &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
				Components: []v1alpha1.ApplicationComponent{{Kind: "ConfigMap"}},
			},
		})
		require.NoError(t, err)
		a.index.Set(compiled)
	}
	a.synced.Store(true)
	return &handler{applications: a}
}

func request(operation admissionv1.Operation, object string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: operation, Namespace: "a", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		Object: runtime.RawExtension{Raw: []byte(object)},
	}}
}

const member = `{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "settings", "labels": {"app": "app-1"}}}`

// C32: whatever it is asked, it refuses nothing; each answer is counted by what it was.
func TestHandler_refusesNothing(t *testing.T) {
	known, unread := answering(t, 2), answering(t, 2)
	unread.applications.synced.Store(false)
	status := request(admissionv1.Update, member)
	status.SubResource = "status"
	for _, c := range []struct {
		reason  string
		handler *handler
		request admission.Request
		outcome string
	}{
		{"a member", known, request(admissionv1.Create, member), injected},
		{"nobody's", known, request(admissionv1.Update, `{"metadata": {"labels": {"app": "other"}}}`), unchanged},
		{"a member no more", known, request(admissionv1.Update, `{"metadata": {"annotations": {"kubernetes.io/application": "app-1", "apps.waybill.dev/injected": "app-1"}}}`), released},
		{"a member that lost its label", known, request(admissionv1.Update,
			`{"metadata": {"labels": {"app": "app-1"}, "annotations": {"kubernetes.io/application": "app-1", "apps.waybill.dev/injected": "app-1"}}}`), relabelled},
		{"an orphan", known, request(admissionv1.Update, `{"metadata": {"annotations": {"kubernetes.io/application": "app-1"}}}`), warned},
		{"Applications are not read yet", unread, request(admissionv1.Create, member), skipped},
		{"a subresource", known, status, skipped},
		{"a deletion", known, request(admissionv1.Delete, ""), skipped},
		{"no object", known, request(admissionv1.Create, `{"metadata": 7}`), failed},
	} {
		before := testutil.ToFloat64(outcomes.WithLabelValues(c.outcome))
		response := c.handler.Handle(t.Context(), c.request)
		assert.True(t, response.Allowed, c.reason)
		assert.InDelta(t, before+1, testutil.ToFloat64(outcomes.WithLabelValues(c.outcome)), 0, c.reason)
		changes := c.outcome == injected || c.outcome == released || c.outcome == relabelled
		assert.Equal(t, changes, len(response.Patches) > 0, c.reason)
		for _, op := range response.Patches {
			assert.True(t, strings.HasPrefix(op.Path, "/metadata/"), op.Path)
		}
	}
}

// A97: what an answer costs, with a hundred Applications or ten thousand, about small objects and large ones.
func BenchmarkHandler(b *testing.B) {
	for _, apps := range []int{100, 10_000} {
		h := answering(b, apps)
		for _, size := range []int{1 << 10, 1 << 20} {
			object, err := json.Marshal(corev1.ConfigMap{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
				ObjectMeta: metav1.ObjectMeta{Name: "settings", Labels: map[string]string{"app": "app-1"}},
				Data:       map[string]string{"key": strings.Repeat("x", size)},
			})
			require.NoError(b, err)
			req := request(admissionv1.Create, string(object))
			b.Run(fmt.Sprintf("applications=%d/bytes=%d", apps, size), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					h.Handle(b.Context(), req)
				}
			})
		}
	}
}
