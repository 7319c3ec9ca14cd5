package kubernetescluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/reconcile"
)

// wayOut ends every message about what blocks a deletion with onDelete Wait.
const wayOut = "set spec.onDelete to Abandon to remove it without cleanup"

// remove removes the finalizer of the KubernetesCluster when nothing of ours is left in the
// cluster, or, with onDelete Abandon, without waiting for that.
func (r *Reconciler) remove(ctx context.Context, s *scope) (reconcile.Outcome, error) {
	var err error
	if s.handover, err = r.handover(ctx, s); err != nil {
		return reconcile.Outcome{}, err
	}
	s.state, _ = r.Clusters.State(s.key)
	abandoned := s.kc.GetOnDelete() == v1alpha1.DeleteAbandon
	untouched, err := r.untouched(ctx, s)
	switch {
	case err != nil:
		return reconcile.Outcome{}, err
	case untouched, abandoned && s.handover, !controllerutil.ContainsFinalizer(s.kc, v1alpha1.Finalizer):
		return reconcile.Outcome{Released: true}, nil
	case abandoned:
		return r.abandon(s)
	default:
		return r.drain(ctx, s)
	}
}

// untouched reports whether there can be nothing in the cluster, as it was never reached. The
// status may be lost, as when the hub was restored from a backup; what is scheduled to the cluster
// is not.
func (r *Reconciler) untouched(ctx context.Context, s *scope) (bool, error) {
	if s.kc.Status.UID != "" || s.state.Engaged {
		return false, nil
	}
	if s.kc.GetOnDelete() == v1alpha1.DeleteAbandon {
		return true, nil
	}
	scheduled := &leftovers{}
	err := r.addScheduled(ctx, s, scheduled)
	return scheduled.err() == nil, err
}

// handover reports whether another KubernetesCluster drives the cluster, or will.
func (r *Reconciler) handover(ctx context.Context, s *scope) (bool, error) {
	bound := r.claims.bound(s.kc)
	others, err := r.sameCluster(ctx, s.kc, bound)
	return slices.ContainsFunc(others, func(other *v1alpha1.KubernetesCluster) bool {
		return r.precedes(other, s.kc, bound) || other.DeletionTimestamp.IsZero()
	}), err
}

// drain waits until no installation is left in the cluster, no GitSync delivers to it, and no
// KubernetesApplication is scheduled to it. Then it removes the copies of definitions, and what was installed
// of Waybill itself. A cluster that is handed over keeps all of it.
func (r *Reconciler) drain(ctx context.Context, s *scope) (reconcile.Outcome, error) {
	if s.kc.Spec.Paused {
		r.pause(s)
		return reconcile.Outcome{}, reconcile.Waiting(v1alpha1.SuspendedReason, 0,
			"spec.paused is set, so nothing is deleted in the cluster: unset it, or %s", wayOut)
	}
	for _, step := range []func(context.Context, *scope) error{r.connect, r.look, r.summarize, r.remains} {
		switch err := step(ctx, s); {
		case err != nil && s.goes:
			return reconcile.Outcome{}, err
		case err != nil:
			return reconcile.Outcome{}, fmt.Errorf("%w; %s", err, wayOut)
		}
	}
	switch {
	case s.outcome != nil:
		return *s.outcome, nil
	case s.handover:
		return reconcile.Outcome{Released: true}, nil
	}
	e := r.engagements.Get(s.key)
	if e == nil {
		return reconcile.Outcome{Pending: true}, nil
	}
	if r.agents.Running(reconcile.KeyOf(s.kc)) { // it would install what is about to go
		r.agents.Drop(reconcile.KeyOf(s.kc))
		return reconcile.Outcome{Pending: true}, nil
	}
	kc := s.kc.DeepCopy()
	err, done := r.jobs.Do(s.key.String(), reconcile.KeyOf(s.kc), "drain", func(ctx context.Context) error {
		if err := r.cleanup(ctx, e.cluster.Metadata(), kc, false); err != nil {
			return err
		}
		return r.uninstallAgent(ctx, e.cluster, kc.Status.Agent)
	})
	switch {
	case !done:
		return reconcile.Outcome{Pending: true}, nil
	case err != nil:
		return reconcile.Outcome{}, reconcile.Failed(v1alpha1.DeleteFailedReason, "%w; %s", err, wayOut)
	}
	return reconcile.Outcome{Released: true}, nil
}

// remains returns an error that says what is left in the cluster, or why that is not known.
func (r *Reconciler) remains(ctx context.Context, s *scope) error {
	left := &leftovers{}
	gitSyncs, err := r.addGitSyncs(ctx, s, left)
	if err != nil {
		return err
	}
	if err := r.addScheduled(ctx, s, left); err != nil {
		return err
	}
	if s.handover {
		s.goes = left.byThemselves()
		return left.err()
	}
	if errors.Is(s.state.Err, cluster.ErrUnreachable) {
		return reconcile.Waiting(v1alpha1.ClusterUnreachableReason, 0,
			"the API server does not answer: %s; nothing can be deleted in the cluster until it does", s.why())
	}
	if s.state.Contacted && s.state.Err != nil {
		reason := v1alpha1.ForbiddenReason
		if refused := refusalOf(s.state.Err); refused != nil {
			reason = refused.reason
		}
		return reconcile.Waiting(reason, 0, "%s", s.why())
	}
	if e := r.engagements.Get(s.key); e == nil || !e.synced() {
		s.outcome = &reconcile.Outcome{Pending: true}
		return r.judgeEngagement(s)
	}
	if s.kc.IsSeed() {
		s.addUsage(left)
		return left.err()
	}
	list, err := r.listInstallations(ctx, s)
	if err != nil {
		return err
	}
	r.provider.Withdraw(s.key)
	s.addInstallations(list, gitSyncs, left)
	s.goes = left.byThemselves()
	return left.err()
}

// abandon removes the cluster as it is. If the cluster answers, it removes the copies of definitions and
// the finalizers of installations, so that nothing hangs there for ever. A seed keeps the copies as
// definitions of its own, since it goes on without the hub.
func (r *Reconciler) abandon(s *scope) (reconcile.Outcome, error) {
	r.Clusters.Remove(s.key) // so that nothing puts back what is removed
	kc := s.kc.DeepCopy()
	err, done := r.jobs.Do(s.key.String(), reconcile.KeyOf(s.kc), "abandon", func(ctx context.Context) error {
		if err := r.leadsAsBound(ctx, kc); err != nil {
			return err
		}
		target, release, err := r.direct(ctx, kc)
		if err != nil {
			return err
		}
		defer release()
		if kc.IsSeed() {
			return errors.Join(r.disown(ctx, target), r.removeCredentials(ctx, target))
		}
		return r.cleanup(ctx, target, kc, true)
	})
	if !done {
		return reconcile.Outcome{Pending: true}, nil
	}
	if err != nil {
		byHand := fmt.Sprintf("remove finalizer %s from the ApplicationInstallations in the cluster", v1alpha1.Finalizer)
		if kc.IsSeed() {
			byHand = fmt.Sprintf("kubectl annotate applicationdefinitions --all --field-manager=%s %s- in the seed", v1alpha1.FieldManager, v1alpha1.CopyOfAnnotation)
		}
		s.pass.Tell(reconcile.Event{Type: corev1.EventTypeWarning, Reason: v1alpha1.DeleteFailedReason, Action: "Abandon", Note: fmt.Sprintf(
			"removed without cleanup: %v; to finish by hand: %s", err, byHand)})
	}
	return reconcile.Outcome{Released: true}, nil
}

// leadsAsBound returns an error if the kubeconfig leads to another cluster than the one that the
// KubernetesCluster is bound to, from which nothing is to be removed.
func (r *Reconciler) leadsAsBound(ctx context.Context, kc *v1alpha1.KubernetesCluster) error {
	config, err := r.config(ctx, kc)
	if err != nil {
		return err
	}
	uid, err := r.Clusters.Identify(ctx, config)
	if bound := r.claims.bound(kc); err == nil && bound != "" && bound != uid {
		return fmt.Errorf("the kubeconfig leads to the cluster with UID %s, not to the one with UID %s", uid, bound)
	}
	return err
}

// release removes the finalizer and forgets the cluster.
func (r *Reconciler) release(ctx context.Context, s *scope) error {
	if err := reconcile.RemoveFinalizer(ctx, r.Client, s.kc); err != nil {
		return err
	}
	r.forget(s.key)
	r.jobs.Drop(reconcile.KeyOf(s.kc))
	r.agents.Drop(reconcile.KeyOf(s.kc))
	r.kernel.Forget(s.kc.UID)
	return nil
}
