package reconcile

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// conflictRetry is when a write is tried again that met with a concurrent one. Mostly the watch that shows
// the latter triggers that before.
const conflictRetry = 200 * time.Millisecond

// Quiet returns a reconciler that does as r, but tries again without an error if all that failed are
// writes to objects that were modified since they were read. That is normal, and not logged as an
// error.
func Quiet(r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		result, err := r.Reconcile(ctx, req)
		if !isConflict(err) {
			return result, err
		}
		ctrl.LoggerFrom(ctx).V(1).Info("the object was modified concurrently; retrying", "error", err.Error())
		return ctrl.Result{RequeueAfter: conflictRetry}, nil
	})
}

// isConflict reports whether err is a conflict or, if it combines several errors, whether all of them are.
func isConflict(err error) bool {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case nil:
		return false
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if !isConflict(one) {
				return false
			}
		}
		return len(e.Unwrap()) > 0
	case interface{ Unwrap() error }:
		return isConflict(e.Unwrap())
	default:
		return apierrors.IsConflict(err)
	}
}
