package webhooks

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/webhooks/intake"
	"waybill.dev/waybill/webhooks/registration"
)

// dated implements rules that remember until when they may look things up.
type dated struct {
	until time.Time
}

func (*dated) validate(*v1alpha1.GitSync, *v1alpha1.GitSync) (admission.Warnings, field.ErrorList) {
	return nil, nil
}

func (*dated) specChanged(*v1alpha1.GitSync, *v1alpha1.GitSync) bool { return true }

func (d *dated) review(ctx context.Context, _, _ *v1alpha1.GitSync) (admission.Warnings, error) {
	d.until, _ = ctx.Deadline()
	return nil, nil
}

// unanswered implements rules whose look-ups get no answer.
type unanswered struct{ dated }

func (*unanswered) review(context.Context, *v1alpha1.GitSync, *v1alpha1.GitSync) (admission.Warnings, error) {
	return nil, apierrors.NewServiceUnavailable("nobody answers")
}

// What came to no decision was not stored: the log says which object and why, and holds nothing of it.
func TestDecisions_thatFailAreLogged(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		rules  rules[*v1alpha1.GitSync]
		url    string
		lines  int
	}{
		"allowed":     {"there is nothing to say", &dated{}, "https://git.example.com", 0},
		"no decision": {"somebody has to look at what does not answer", &unanswered{}, "https://git.example.com/of-a-tenant", 1},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
			got := validatorOf(tc.rules).Handle(ctx, gitSyncRequest(t, admissionv1.Create, tc.url))
			require.Equal(t, tc.lines > 0, !got.Allowed)
			require.Len(t, lines, tc.lines, tc.reason)
			for _, line := range lines {
				for _, text := range []string{"team-a/shop", v1alpha1.GitSyncKind, "CREATE", "nobody answers"} {
					assert.Contains(t, line, text, tc.reason)
				}
				assert.NotContains(t, line, tc.url, tc.reason)
			}
		})
	}
}

// validatorOf returns a validator of GitSyncs by other rules.
func validatorOf(r rules[*v1alpha1.GitSync]) *validator[*v1alpha1.GitSync] {
	scheme := runtime.NewScheme()
	_ = v1alpha1.AddToScheme(scheme)
	return &validator[*v1alpha1.GitSync]{
		kind: v1alpha1.GitSyncKind, rules: r, screen: &screen{decoded: intake.NewDecoded()},
		reader: reader[*v1alpha1.GitSync]{decoder: admission.NewDecoder(scheme), empty: func() *v1alpha1.GitSync { return &v1alpha1.GitSync{} }},
	}
}

// gitSyncRequest writes a GitSync of the URL team-a/shop.
func gitSyncRequest(t *testing.T, operation admissionv1.Operation, url string) admission.Request {
	t.Helper()
	raw, err := json.Marshal(&v1alpha1.GitSync{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.GitSyncKind},
		Spec:     v1alpha1.GitSyncSpec{URL: url},
	})
	require.NoError(t, err)
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: "team-a", Name: "shop", Operation: operation, Object: runtime.RawExtension{Raw: raw},
	}}
	if operation == admissionv1.Update {
		req.OldObject = req.Object
	}
	return req
}

// C50: a decision is made before the API server stops waiting for it, however much it asks.
func TestDecisions_areMadeInTime(t *testing.T) {
	for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
		t.Run(string(operation), func(t *testing.T) {
			d, start := &dated{}, time.Now()
			got := validatorOf(d).Handle(t.Context(), gitSyncRequest(t, operation, "https://git.example.com"))
			require.True(t, got.Allowed, got.Result)
			require.False(t, d.until.IsZero(), "there is a limit")
			assert.Less(t, d.until.Sub(start), registration.Timeout)
		})
	}
}
