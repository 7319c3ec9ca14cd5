package gitsync

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

// remove takes everything that was delivered out of every cluster, unless spec.prune is
// false: then it stays. A cluster that cannot be reached holds the GitSync until it is back
// or its KubernetesCluster is deleted.
func (r *Reconciler) remove(ctx context.Context, s *scope) (reconcile.Outcome, error) {
	if err := r.restore(ctx, s); err != nil {
		return reconcile.Outcome{}, err
	}
	for _, t := range s.targets() {
		if err := r.leave(ctx, s, t); err != nil {
			return reconcile.Outcome{}, err
		}
	}
	for _, t := range s.targets() {
		switch {
		case t.applier != nil:
			r.takeOut(s, t)
		case !s.gs.GetPrune():
			r.forgetTarget(s, t)
		}
	}
	if s.pending {
		return reconcile.Outcome{Pending: true}, nil
	}
	if len(s.session.targets) == 0 {
		return reconcile.Outcome{}, nil
	}
	return reconcile.Outcome{}, s.remaining(r.kernel)
}

// remaining says what a deletion waits for.
func (s *scope) remaining(kernel *reconcile.Kernel) error {
	for _, t := range s.targets() {
		if t.err != nil {
			return reconcile.Waiting(v1alpha1.ClusterUnreachableReason, 0,
				"%s%w; what was delivered there is deleted when it is back; delete its KubernetesCluster to give it up", t.prefix(), t.err)
		}
	}
	if problems := s.problems(); len(problems) > 0 {
		return s.retryDelete(kernel, reconcile.Failed(v1alpha1.DeleteFailedReason, "%s", summarize(problems, len(s.session.inventory))))
	}
	var left []string
	for _, t := range s.targets() {
		if t.result.Err != nil {
			return s.retryDelete(kernel, reconcile.Failed(v1alpha1.DeleteFailedReason, "%s%w", t.prefix(), t.result.Err))
		}
		for _, id := range t.result.Inventory {
			left = append(left, t.prefix()+id.String())
		}
	}
	slices.Sort(left)
	shown := left[:min(len(left), 3)]
	return reconcile.Waiting(v1alpha1.DeletingReason, 0, "waiting for %s%s to be gone", strings.Join(shown, ", "), andMore(len(left)-len(shown)))
}

func (s *scope) retryDelete(kernel *reconcile.Kernel, err error) error {
	if s.delivered {
		s.session.failed(kernel.Backoff)
	}
	s.session.nextLook = s.session.retryAt
	return s.waiting(err)
}

// release lets the GitSync go and forgets it.
func (r *Reconciler) release(ctx context.Context, s *scope) error {
	before := s.gs.DeepCopy()
	if controllerutil.RemoveFinalizer(s.gs, v1alpha1.Finalizer) {
		if err := r.Client.Patch(ctx, s.gs, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("release GitSync: %w", err)
		}
	}
	r.loads.Drop(s.session.key)
	r.sessions.drop(s.session.key)
	r.kernel.Forget(s.gs.UID)
	r.metrics.forget(s.gs)
	return nil
}
