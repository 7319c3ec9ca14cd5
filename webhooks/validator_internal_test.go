package webhooks

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
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
