package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	crreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"waybill.dev/waybill/sync/reconcile"
)

// A conflict is tried again without an error, which controller-runtime would log; nothing else is hidden.
func TestQuiet(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "gitsyncs"}, "site", errors.New("modified"))
	other := errors.New("no such host")
	for name, c := range map[string]struct {
		reason string
		err    error
		quiet  bool
	}{
		"none":     {"there is nothing to hide", nil, false},
		"conflict": {"somebody else was faster", fmt.Errorf("add finalizer: %w", conflict), true},
		"several":  {"all of them are conflicts", errors.Join(conflict, fmt.Errorf("write: %w", conflict)), true},
		"other":    {"it is not known to be normal", other, false},
		"mixed":    {"one of them is not normal", errors.Join(conflict, other), false},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := reconcile.Quiet(crreconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
				return ctrl.Result{}, c.err
			})).Reconcile(t.Context(), ctrl.Request{})
			assert.Equal(t, c.quiet, result.RequeueAfter > 0, c.reason)
			if c.quiet {
				assert.NoError(t, err, c.reason)
			} else {
				assert.Equal(t, c.err, err, c.reason)
			}
		})
	}
}
