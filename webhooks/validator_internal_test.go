package webhooks

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
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
			ctx = admission.NewContextWithRequest(ctx, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Namespace: "team-a", Name: "shop"}})
			v := &validator[*v1alpha1.GitSync]{kind: v1alpha1.GitSyncKind, rules: tc.rules}
			_, err := v.ValidateCreate(ctx, &v1alpha1.GitSync{Spec: v1alpha1.GitSyncSpec{URL: tc.url}})
			require.Equal(t, tc.lines > 0, err != nil)
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

// C50: a decision is made before the API server stops waiting for it, however much it asks.
func TestDecisions_areMadeInTime(t *testing.T) {
	obj := &v1alpha1.GitSync{}
	for name, decide := range map[string]func(*dated) error{
		"create": func(d *dated) error {
			_, err := (&validator[*v1alpha1.GitSync]{rules: d}).ValidateCreate(t.Context(), obj)
			return err
		},
		"update": func(d *dated) error {
			_, err := (&validator[*v1alpha1.GitSync]{rules: d}).ValidateUpdate(t.Context(), obj, obj)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, start := &dated{}, time.Now()
			require.NoError(t, decide(d))
			require.False(t, d.until.IsZero(), "there is a limit")
			assert.Less(t, d.until.Sub(start), registration.Timeout)
		})
	}
}
