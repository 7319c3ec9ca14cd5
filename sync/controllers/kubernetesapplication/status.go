package kubernetesapplication

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/deliver/hold"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/reconcile"
)

const (
	// shown is how many resources a message names.
	shown = 5
	// maxMessage is how many bytes of the message of one resource a message repeats: all of a usual
	// refusal, and the beginning of one that would not leave room for the others.
	maxMessage = 4096
)

// judge returns how far the application is, based on what its resources report. It reports nothing
// while a cache is behind: that would be about another generation.
func (r *Reconciler) judge(s *scope) (reconcile.Outcome, error) {
	name := s.app.Spec.ClusterName
	switch {
	case s.stale():
		return reconcile.Outcome{Pending: true, RequeueAfter: retryConflict}, nil
	case s.cluster == nil:
		return reconcile.Outcome{}, reconcile.Stalled(v1alpha1.ClusterNotFoundReason,
			"KubernetesCluster %s does not exist; the application is not moved to another: create the cluster, or delete and recreate the application", name)
	case s.failed != nil:
		return reconcile.Outcome{}, s.failed
	case s.cluster.Spec.Paused:
		return reconcile.Outcome{Unknown: v1alpha1.SuspendedReason, Message: fmt.Sprintf("cluster %s is paused: nothing is submitted to it", name)}, nil
	}
	for _, err := range []error{r.reach(s), s.unusable(), s.trouble()} {
		if err != nil {
			return reconcile.Outcome{}, err
		}
	}
	submitted, desired := s.submitted(), len(s.resources)
	if submitted < desired {
		return reconcile.Outcome{Unknown: v1alpha1.ProgressingReason, Message: fmt.Sprintf("%d of %s submitted to cluster %s", submitted, resourcesAre(desired), name)}, nil
	}
	return reconcile.Outcome{Message: fmt.Sprintf("%s submitted to cluster %s", allAre(desired), name)}, nil
}

// trouble returns what the hub, or the cluster, has refused. Names that are taken come first,
// because only their owner can change that.
func (s *scope) trouble() error {
	var taken, refused, failed []string
	for i, found := range s.resources {
		name := s.app.Spec.ResourceTemplates[i].Metadata.Name
		switch {
		case found.conflict != "":
			taken = append(taken, fmt.Sprintf("KubernetesApplicationResource %s exists and %s", name, found.conflict))
		case found.refused != nil:
			refused = append(refused, describe(name, found.refused.Error()))
		case found.failed() != "":
			failed = append(failed, describe(name, found.failed()))
		}
	}
	all := append(refused, failed...)
	if len(taken) > 0 {
		all = append([]string{excerpt.Texts(taken, ", ", shown) + ": rename the template, or delete the resource"}, all...)
	}
	switch text := excerpt.Texts(all, "; ", shown); {
	case len(refused) > 0:
		return reconcile.Failed(v1alpha1.ResourcesFailedReason, "%s", text)
	case len(taken) > 0 && len(failed) == 0:
		return reconcile.Stalled(v1alpha1.ResourceConflictReason, "%s", text)
	case len(all) > 0:
		return reconcile.Waiting(v1alpha1.ResourcesFailedReason, 0, "%s", text)
	default:
		return nil
	}
}

// unusable returns what resources report about the cluster as a whole: that it refuses our
// credentials, or does not answer them although it answers. It is reported once, however many
// resources report it.
func (s *scope) unusable() error {
	for _, found := range s.resources {
		if ready := found.unready(); ready != nil && ready.Reason == v1alpha1.ClusterUnreachableReason {
			return reconcile.Waiting(ready.Reason, 0, "%s", excerpt.Of(ready.Message, maxMessage))
		}
	}
	return nil
}

// saidOnce are the reasons of what is wrong with the cluster, and so with all its resources: judge
// reports it for the application.
var saidOnce = []string{v1alpha1.ClusterUnreachableReason, v1alpha1.SuspendedReason, v1alpha1.ClusterNotFoundReason}

// failed returns what is wrong with the resource, as it reports itself; empty if nothing is, or if
// that is not known.
func (r resource) failed() string {
	if r.live == nil || !r.live.DeletionTimestamp.IsZero() || r.live.Status.ObservedGeneration != r.live.Generation {
		return ""
	}
	submitted := conditions.Get(r.live, v1alpha1.SubmittedCondition)
	if submitted != nil && submitted.Status == metav1.ConditionFalse {
		return submitted.Message
	}
	if ready := r.unready(); ready != nil && !slices.Contains(saidOnce, ready.Reason) {
		return ready.Message
	}
	return ""
}

// unready returns the condition Ready if it is False, and nil if it is not.
func (r resource) unready() *metav1.Condition {
	if r.live == nil {
		return nil
	}
	ready := conditions.Get(r.live, v1alpha1.ReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionFalse {
		return nil
	}
	return ready
}

// reach returns an error if the cluster does not answer. A cluster that was not contacted since the
// start of the process is taken to answer: if it does not, that triggers a reconciliation.
func (r *Reconciler) reach(s *scope) error {
	_, err := r.Clusters.Get(s.clusterKey())
	if !errors.Is(err, cluster.ErrUnreachable) {
		return nil
	}
	return reconcile.Waiting(v1alpha1.ClusterUnreachableReason, 0,
		"cluster %s cannot be reached: %w; what was submitted is left as it is, and the rest follows when it is reachable again", s.app.Spec.ClusterName, withoutName(err))
}

// conclude writes the result of a pass to the status: the conditions Scheduled and Submitted, the
// counts and the state. A pass that could not even look leaves them as they are.
func (s *scope) conclude(err error) {
	if s.resources == nil && s.unplaced == nil && !s.deleting() {
		return
	}
	status := &s.app.Status
	status.Cluster, status.ConsideredCluster = s.app.Spec.ClusterName, s.considered
	status.DesiredResources = int32(len(s.app.Spec.ResourceTemplates))
	if s.deleting() {
		s.markDeleting()
	} else {
		status.SubmittedResources = int32(s.submitted())
		s.markScheduled(err)
		s.markSubmitted(err)
		s.markHeld()
	}
	status.State = s.state()
}

func (s *scope) markScheduled(err error) {
	switch {
	case s.unplaced != nil, s.cluster == nil:
		conditions.MarkFalse(s.app, v1alpha1.ScheduledCondition, reasonOf(err), "%s", err)
	default:
		conditions.MarkTrue(s.app, v1alpha1.ScheduledCondition, v1alpha1.SucceededReason, "scheduled to cluster %s", s.app.Spec.ClusterName)
	}
}

func (s *scope) markSubmitted(err error) {
	trouble := s.trouble()
	switch submitted := s.submitted(); {
	case s.unplaced != nil:
		conditions.MarkUnknown(s.app, v1alpha1.SubmittedCondition, reasonOf(err), "no cluster was found yet")
	case s.cluster == nil:
		conditions.MarkUnknown(s.app, v1alpha1.SubmittedCondition, reasonOf(err), "%s", err)
	case submitted == len(s.resources):
		conditions.MarkTrue(s.app, v1alpha1.SubmittedCondition, v1alpha1.SucceededReason, "%s submitted", allAre(submitted))
	case trouble != nil:
		conditions.MarkFalse(s.app, v1alpha1.SubmittedCondition, reasonOf(trouble), "%s", trouble)
	default:
		conditions.MarkUnknown(s.app, v1alpha1.SubmittedCondition, v1alpha1.ProgressingReason, "%d of %s submitted", submitted, resourcesAre(len(s.resources)))
	}
}

// markHeld reports the objects of its resources that are left as an ApplicationRollback has put them.
func (s *scope) markHeld() {
	var holds []v1alpha1.Hold
	for _, r := range s.resources {
		if r.live != nil {
			holds = append(holds, r.live.Status.Held...)
		}
	}
	hold.Mark(s.app, holds)
}

// markDeleting reports how many resources are left, if that is known.
func (s *scope) markDeleting() {
	if s.left == nil {
		return
	}
	s.app.Status.SubmittedResources = int32(len(s.left))
	conditions.MarkUnknown(s.app, v1alpha1.SubmittedCondition, v1alpha1.DeletingReason, "%s left", resourcesAre(len(s.left)))
}

// resourcesAre begins what is said of a number of resources.
func resourcesAre(n int) string {
	if n == 1 {
		return "1 resource is"
	}
	return fmt.Sprintf("%d resources are", n)
}

// allAre begins what is said of all resources.
func allAre(n int) string {
	if n == 1 {
		return "the resource is"
	}
	return "all " + resourcesAre(n)
}

// state returns the state that follows from the conditions and the counts.
func (s *scope) state() v1alpha1.ApplicationState {
	status := &s.app.Status
	switch {
	case s.deleting():
		return v1alpha1.StateDeleting
	case status.Cluster == "":
		return v1alpha1.StatePending
	case conditions.IsFalse(s.app, v1alpha1.ScheduledCondition):
		return v1alpha1.StateFailed
	case conditions.IsTrue(s.app, v1alpha1.SubmittedCondition):
		return v1alpha1.StateSubmitted
	case status.SubmittedResources > 0:
		return v1alpha1.StatePartiallySubmitted
	case conditions.IsFalse(s.app, v1alpha1.SubmittedCondition):
		return v1alpha1.StateFailed
	default:
		return v1alpha1.StateScheduled
	}
}

// reasonOf returns the reason that an error carries, or ProgressingWithRetry if it carries none.
func reasonOf(err error) string {
	return cmp.Or(reconcile.ReasonOf(err), v1alpha1.ProgressingWithRetryReason)
}

func describe(name, message string) string {
	return "resource " + name + ": " + excerpt.Of(message, maxMessage)
}
