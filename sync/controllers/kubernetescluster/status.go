package kubernetescluster

import (
	"context"
	"errors"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/reconcile"
)

const (
	pausedMessage       = "spec.paused is set: nothing is done in the cluster, what runs there keeps running"
	connectingMessage   = "the first contact is being made"
	noKubeconfigMessage = "there is no kubeconfig to reach it with"
	reachableMessage    = "the API server answers"
)

// look writes what the registry knows of the cluster to the status. Until the first contact, what
// an earlier process wrote stays.
func (r *Reconciler) look(_ context.Context, s *scope) error {
	if at := s.kc.Annotations[v1alpha1.ReconcileAtAnnotation]; at != s.kc.Status.LastHandledReconcileAt {
		r.Clusters.Probe(s.key)
	}
	s.state, _ = r.Clusters.State(s.key)
	if !s.state.Contacted {
		if !conditions.Has(s.kc, v1alpha1.ClusterReachableCondition) {
			s.unknown(v1alpha1.ProgressingReason, connectingMessage)
		}
		return nil
	}
	if s.state.UID != "" {
		s.kc.Status.UID, s.kc.Status.Version = s.state.UID, s.state.Version
	}
	s.see()
	return nil
}

// see writes whether the cluster answers, and when it last did. It updates the latter only when the
// cluster is lost and when it is back (C38).
func (s *scope) see() {
	status := &s.kc.Status
	if changed := status.Reachable != s.state.Reachable || status.LastSeen == nil; changed && !s.state.LastSeen.IsZero() {
		at := metav1.NewTime(s.state.LastSeen)
		status.LastSeen = &at
	}
	status.Reachable = s.state.Reachable
	if s.state.Reachable {
		conditions.MarkTrue(s.kc, v1alpha1.ClusterReachableCondition, v1alpha1.SucceededReason, reachableMessage)
		return
	}
	reason := v1alpha1.ClusterUnreachableReason
	if s.excluded() {
		reason = v1alpha1.LimitExceededReason
	}
	conditions.MarkFalse(s.kc, v1alpha1.ClusterReachableCondition, reason, "%s", s.why())
}

// excluded reports whether the cluster is not usable because it sent more than is accepted of it.
func (s *scope) excluded() bool {
	var unreachable *cluster.UnreachableError
	return errors.As(s.state.Err, &unreachable) && unreachable.Limit != nil
}

// why returns why the cluster is not usable, without its name, which the object has.
func (s *scope) why() string {
	var unreachable *cluster.UnreachableError
	if errors.As(s.state.Err, &unreachable) {
		return unreachable.Reason
	}
	return s.state.Err.Error()
}

// unknown writes that nobody checks whether the cluster answers.
func (s *scope) unknown(reason, message string) {
	s.kc.Status.Reachable = false
	conditions.MarkUnknown(s.kc, v1alpha1.ClusterReachableCondition, reason, "%s", message)
}

// judge returns an error that says what keeps the cluster from being ready. The registry keeps
// trying in any case, and wakes the object when something has changed.
func (r *Reconciler) judge(ctx context.Context, s *scope) error {
	if err := r.recheck(ctx, s); err != nil {
		return err
	}
	switch {
	case !s.state.Contacted:
		s.connecting()
		return nil
	case s.excluded():
		return reconcile.Waiting(v1alpha1.LimitExceededReason, 0, "disconnected, since the API server sent too much: %s; it is tried again after a pause", s.why())
	case errors.Is(s.state.Err, cluster.ErrUnreachable):
		return reconcile.Waiting(v1alpha1.ClusterUnreachableReason, 0, "the API server does not answer: %s; it is asked again until it does", s.why())
	case s.state.Err != nil:
		return reconcile.Waiting(v1alpha1.ForbiddenReason, 0, "%s", s.why())
	case s.state.Yields != nil:
		return nil
	}
	return r.judgeEngagement(s)
}

// connecting ends the reconciliation until a contact wakes the object. After a restart, the
// conditions of the previous process stay until then.
func (s *scope) connecting() {
	s.outcome = &reconcile.Outcome{Unknown: v1alpha1.ProgressingReason, Message: connectingMessage}
	if conditions.Has(s.kc, v1alpha1.ReadyCondition) {
		s.outcome = &reconcile.Outcome{Pending: true}
	}
}

// judgeEngagement returns an error that says what went wrong when the cluster was engaged.
func (r *Reconciler) judgeEngagement(s *scope) error {
	e := r.engagements.Get(s.key)
	if e == nil {
		s.connecting()
		return nil
	}
	err := e.failure()
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return reconcile.Waiting(v1alpha1.ForbiddenReason, 0, "the user of the kubeconfig lacks a right: %w", err)
	default:
		return reconcile.Waiting(v1alpha1.ApplyFailedReason, 0, "%w", err)
	}
}

// ready returns the outcome for a cluster that lacks nothing.
func (s *scope) ready() reconcile.Outcome {
	message := "the cluster is engaged, Kubernetes " + s.kc.Status.Version
	if s.state.Yields != nil {
		message += "; GitSyncs are delivered, and nothing is installed: " + s.state.Yields.Error()
	}
	return reconcile.Outcome{Message: message}
}
