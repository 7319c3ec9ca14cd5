package applicationrollback

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/rollback"
	"waybill.dev/waybill/sync/excerpt"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// scope is one pass over one rollback.
type scope struct {
	*Reconciler
	obj  *v1alpha1.ApplicationRollback
	pass *kernel.Pass

	// waits is what the phase waits for, for people: `PersistentVolumeClaim "data" to be bound`.
	waits string
	// after is when to look again at the latest, apart from the limit of the phase.
	after time.Duration
	// watches is set if a rollback that has not begun waits for claims.
	watches bool
	// unhandled is set if what a user requests by annotation waits for its turn.
	unhandled bool
	// done gives back the memory that definitions take; nil if none are in use.
	done func()
	// gone is set once nothing is left to be done before the rollback may be deleted.
	gone bool
}

// step does what is left to be done of a phase. It returns the phase that follows, or the same one if it
// has to wait, and says so in scope.waits.
type step func(context.Context, *scope) (v1alpha1.RollbackPhase, error)

// steps are those of the phases.
var steps = map[v1alpha1.RollbackPhase]step{
	v1alpha1.RollbackPending:     prepare,
	v1alpha1.RollbackSaving:      save,
	v1alpha1.RollbackHolding:     hold,
	v1alpha1.RollbackScalingDown: scaleDown,
	v1alpha1.RollbackRestoring:   restoreVolumes,
	v1alpha1.RollbackSwapping:    swapVolumes,
	v1alpha1.RollbackApplying:    applyObjects,
	v1alpha1.RollbackScalingUp:   scaleUp,
	v1alpha1.RollbackChecking:    check,
	v1alpha1.RollbackCompleted:   keep,
	v1alpha1.RollbackReverting:   revert,
	v1alpha1.RollbackReverted:    rest,
	v1alpha1.RollbackFinal:       rest,
	v1alpha1.RollbackFailed:      again,
}

// isUnderWay reports whether a phase changes the application.
func isUnderWay(phase v1alpha1.RollbackPhase) bool {
	return canRevert(phase) || phase == v1alpha1.RollbackReverting
}

// canRevert reports whether a failure in a phase leads back to the state before.
func canRevert(phase v1alpha1.RollbackPhase) bool {
	switch phase {
	case v1alpha1.RollbackHolding, v1alpha1.RollbackScalingDown, v1alpha1.RollbackRestoring, v1alpha1.RollbackSwapping,
		v1alpha1.RollbackApplying, v1alpha1.RollbackScalingUp, v1alpha1.RollbackChecking:
		return true
	}
	return false
}

// mayHaveChanged reports whether the rollback may have changed the application by now: it holds nothing before what it
// will change is in the status.
func (s *scope) mayHaveChanged() bool {
	return canRevert(s.obj.Status.Phase) && (s.obj.Status.Phase != v1alpha1.RollbackHolding || s.obj.Status.Held != nil)
}

// advance does one phase after the other, until one has to wait.
func (r *Reconciler) advance(ctx context.Context, s *scope) (kernel.Outcome, error) {
	for {
		if s.obj.Status.Phase == "" {
			s.obj.Status.Phase, s.obj.Status.PhaseTime = v1alpha1.RollbackPending, ptr.To(metav1.Now())
		}
		phase := s.obj.Status.Phase
		next, err := r.do(ctx, s, phase)
		if s.gone {
			return kernel.Outcome{}, err
		}
		if err != nil || next == phase {
			next, err = s.judge(phase, err)
		}
		if err != nil {
			return kernel.Outcome{RequeueAfter: s.next(), Unhandled: s.unhandled}, err
		}
		if next == phase {
			return s.report()
		}
		if err := s.enter(ctx, next); err != nil {
			return kernel.Outcome{}, err
		}
	}
}

// do does the step of a phase, or what the deletion of the rollback asks for instead.
func (r *Reconciler) do(ctx context.Context, s *scope, phase v1alpha1.RollbackPhase) (v1alpha1.RollbackPhase, error) {
	if s.obj.DeletionTimestamp.IsZero() {
		return steps[phase](ctx, s)
	}
	if s.mayHaveChanged() {
		s.fail(v1alpha1.RollbackDeletedReason, "the ApplicationRollback was deleted")
		return v1alpha1.RollbackReverting, nil
	}
	if phase == v1alpha1.RollbackReverting {
		next, err := revert(ctx, s)
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return phase, s.abandon(ctx)
		}
		return next, err
	}
	return phase, s.leave(ctx)
}

// enter records that a phase begins. Phases that have been entered already are left alone.
func (s *scope) enter(ctx context.Context, phase v1alpha1.RollbackPhase) error {
	s.waits, s.after = "", 0
	if s.obj.Status.Phase == phase {
		return nil
	}
	s.obj.Status.Phase, s.obj.Status.PhaseTime = phase, ptr.To(metav1.Now())
	if phase == v1alpha1.RollbackReverting {
		s.setReleaseRevision(nil)
	}
	if message := progress[phase]; message != "" {
		conditions.MarkUnknown(s.obj, v1alpha1.ReadyCondition, v1alpha1.ProgressingReason, "%s", message)
		conditions.MarkTrue(s.obj, v1alpha1.ReconcilingCondition, v1alpha1.ProgressingReason, "%s", message)
	}
	return s.pass.Write(ctx)
}

// remaining is how much longer the phase may take; false if it may take as long as it takes.
func (s *scope) remaining() (time.Duration, bool) {
	limit := s.limit(s.obj.Status.Phase)
	if limit == 0 || s.obj.Status.PhaseTime == nil {
		return 0, false
	}
	from := s.obj.Status.PhaseTime.Time
	if s.obj.Status.Phase == v1alpha1.RollbackReverting && s.started.After(from) {
		from = s.started // there is no other way than back, so time in which no process ran does not count
	}
	return time.Until(from.Add(limit)), true
}

// next is when to look again at the latest; zero if only events matter.
func (s *scope) next() time.Duration {
	remaining, limited := s.remaining()
	if !limited || s.after > 0 && s.after < remaining {
		return s.after
	}
	return max(remaining, time.Millisecond)
}

// judge says what follows a phase that failed, or waits.
func (s *scope) judge(phase v1alpha1.RollbackPhase, err error) (v1alpha1.RollbackPhase, error) {
	remaining, limited := s.remaining()
	if !(limited && remaining <= 0) && (!isFinal(err) || phase == v1alpha1.RollbackReverting && apierrors.IsForbidden(err)) {
		return phase, err // until the state before is reached, the application is down: a right, or a quota, may come back
	}
	reason, message := v1alpha1.RollbackErrorReason, ""
	switch {
	case isFinal(err):
		message = err.Error()
		if carried := kernel.ReasonOf(err); carried != "" {
			reason = carried
		}
	case err != nil:
		reason, message = v1alpha1.RollbackTimeoutReason, fmt.Sprintf("not done within %s: %v", s.limit(phase), err)
	default:
		reason, message = v1alpha1.RollbackTimeoutReason, fmt.Sprintf("not done within %s: waited for %s", s.limit(phase), s.waits)
	}
	switch {
	case s.mayHaveChanged():
		s.fail(reason, fmt.Sprintf("%s: %s", phase, message))
		return v1alpha1.RollbackReverting, nil
	case phase == v1alpha1.RollbackReverting:
		s.fail(v1alpha1.RollbackFailedReason, s.whatIsWhere(message))
		return v1alpha1.RollbackFailed, nil
	case phase == v1alpha1.RollbackPending, phase == v1alpha1.RollbackSaving, phase == v1alpha1.RollbackHolding:
		s.fail(reason, message)
		return v1alpha1.RollbackFailed, nil
	}
	return phase, err
}

// maxMessage bounds what is said of a failure.
const maxMessage = 4096

func (s *scope) fail(reason, message string) {
	s.obj.Status.Error = &v1alpha1.DataError{Time: ptr.To(metav1.Now()), Reason: reason, Message: excerpt.Of(message, maxMessage)}
}

// isFinal reports whether trying again is of no use.
func isFinal(err error) bool {
	return kernel.IsStalled(err) || errors.Is(err, rollback.ErrGone) || errors.Is(err, rollback.ErrForeign) || meta.IsNoMatchError(err) ||
		apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err)
}

// mark is the value of RestoredByAnnotation on what the rollback has created.
func (s *scope) mark() string { return string(s.obj.UID) }

// heldBy is the value of HeldByAnnotation on what the rollback holds.
func (s *scope) heldBy() string { return s.obj.Namespace + "/" + s.obj.Name }

func (s *scope) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: s.obj.Namespace, Name: name}
}
