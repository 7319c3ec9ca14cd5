package kubernetescluster

import (
	"context"
	"errors"
	"maps"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/reconcile"
)

const (
	pausedMessage       = "spec.paused is set: nothing is done in the cluster, what runs there keeps running"
	connectingMessage   = "connecting for the first time"
	notSeedMessage      = "it is not connected, because it must not be a seed"
	noKubeconfigMessage = "there is no kubeconfig to reach it with"
	reachableMessage    = "the API server answers"
)

// errPaused is why a cluster is withheld from everything in this process while spec.paused is set.
var errPaused = errors.New("its KubernetesCluster is paused")

// look writes what the registry knows of the cluster to the status. Until the first contact, what
// an earlier process wrote stays.
func (r *Reconciler) look(ctx context.Context, s *scope) error {
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
	if claimed, ok := r.claims.get(s.kc); ok && claimed.uid == s.state.UID {
		if err := r.bind(ctx, s, claimed); err != nil {
			return err
		}
	}
	s.see()
	return nil
}

// bind writes which cluster the KubernetesCluster is bound to. What was begun in another one does not
// count in this one; what was begun in this one under another name does.
func (r *Reconciler) bind(ctx context.Context, s *scope, claimed claim) error {
	status := &s.kc.Status
	if status.UID != claimed.uid {
		begun, _, err := r.begunBy(ctx, s.kc, claimed.uid)
		if err != nil {
			return err
		}
		if status.Provided, _, err = r.providedBy(ctx, s.kc, claimed.uid); err != nil {
			return err
		}
		if status.UID != "" {
			status.InstallationsTaken = nil // it is another cluster
		}
		status.UID, status.BoundAt, status.Definitions = claimed.uid, &claimed.at, begun
	}
	if status.Store != claimed.store {
		if err := r.join(ctx, s, claimed); err != nil {
			return err
		}
	}
	status.Version = s.state.Version
	return nil
}

// join writes which of the clusters with its UID the KubernetesCluster leads to. What was begun there
// under another name counts as well, as far as the status has room.
func (r *Reconciler) join(ctx context.Context, s *scope, claimed claim) error {
	begun, _, err := r.begunBy(ctx, s.kc, claimed.uid)
	if err != nil {
		return err
	}
	status := &s.kc.Status
	status.Store = claimed.store
	for name, uid := range begun {
		if len(status.Definitions) >= v1alpha1.MaxBegunDefinitions {
			break
		}
		if status.Definitions == nil {
			status.Definitions = map[string]string{}
		}
		status.Definitions[name] = uid
	}
	return nil
}

// begunBy returns a copy of the definitions that are recorded by the KubernetesCluster that comes first
// of the others that lead to a cluster, and whether there is one.
func (r *Reconciler) begunBy(ctx context.Context, kc *v1alpha1.KubernetesCluster, uid string) (map[string]string, bool, error) {
	others, err := r.sameCluster(ctx, kc, uid)
	first := r.firstOf(others, uid)
	if err != nil || first == nil || first.Status.UID != uid {
		return nil, false, err
	}
	return maps.Clone(first.Status.Definitions), true, nil
}

// see writes whether the cluster answers, and when it last did. It updates the latter only when the
// cluster is lost and when it is back.
func (s *scope) see() {
	status := &s.kc.Status
	if refused := refusalOf(s.state.Err); refused != nil && refused.reason == v1alpha1.ClusterChangedReason {
		status.Reachable = false // what answers is another cluster
		conditions.MarkFalse(s.kc, v1alpha1.ClusterReachableCondition, refused.reason, "%s", refused.message)
		return
	}
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

// unknown writes that it is not checked whether the cluster answers.
func (s *scope) unknown(reason, message string) {
	s.kc.Status.Reachable = false
	conditions.MarkUnknown(s.kc, v1alpha1.ClusterReachableCondition, reason, "%s", message)
}

// judge returns an error that says what keeps the cluster from being ready. The registry keeps
// trying in any case, and enqueues the object when something has changed.
func (r *Reconciler) judge(ctx context.Context, s *scope) error {
	if err := r.recheck(ctx, s); err != nil {
		return err
	}
	refused := refusalOf(s.state.Err)
	switch {
	case !s.state.Contacted:
		s.connecting()
		return nil
	case refused != nil:
		return r.refused(s, refused)
	case s.excluded():
		return reconcile.Waiting(v1alpha1.LimitExceededReason, 0, "disconnected because the API server sent too much: %s; retried after a pause", s.why())
	case errors.Is(s.state.Err, cluster.ErrUnreachable):
		return reconcile.Waiting(v1alpha1.ClusterUnreachableReason, 0, "the API server does not answer: %s; retrying until it does", s.why())
	case s.state.Err != nil:
		return reconcile.Waiting(v1alpha1.ForbiddenReason, 0, "%s", s.why())
	case s.state.Yields != nil:
		return nil
	}
	return r.judgeEngagement(s)
}

// connecting ends the reconciliation until a contact enqueues the object. After a restart, the
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
		return reconcile.Waiting(v1alpha1.ForbiddenReason, 0, "the user of the kubeconfig lacks a permission: %w", err)
	default:
		return reconcile.Waiting(v1alpha1.ApplyFailedReason, 0, "%w", err)
	}
}

// ready returns the outcome for a cluster that lacks nothing.
func (s *scope) ready() reconcile.Outcome {
	message := "the cluster is connected, Kubernetes " + s.kc.Status.Version
	if s.kc.IsSeed() {
		message = "the seed is connected, Kubernetes " + s.kc.Status.Version
	}
	if s.state.Yields != nil {
		message += "; GitSyncs are delivered, and nothing is installed: " + s.state.Yields.Error()
	}
	return reconcile.Outcome{Message: message, RequeueAfter: s.again}
}
