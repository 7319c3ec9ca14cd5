package applicationrollback

import (
	"fmt"
	"strings"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/excerpt"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// progress is what a phase does, for people.
var progress = map[v1alpha1.RollbackPhase]string{
	v1alpha1.RollbackPending:     "checking whether the application can be rolled back",
	v1alpha1.RollbackSaving:      "taking a snapshot of the application as it is",
	v1alpha1.RollbackHolding:     "marking the objects of the application",
	v1alpha1.RollbackScalingDown: "scaling the application to zero",
	v1alpha1.RollbackRestoring:   "restoring volumes beside the old ones",
	v1alpha1.RollbackSwapping:    "replacing the volumes",
	v1alpha1.RollbackApplying:    "applying the objects of the snapshot",
	v1alpha1.RollbackScalingUp:   "scaling the application up",
	v1alpha1.RollbackChecking:    "waiting for the application to become ready",
	v1alpha1.RollbackReverting:   "going back to the state before the rollback",
}

// shown is how many names a message has.
const shown = 5

// report returns the outcome of a pass that is done, or waits.
func (s *scope) report() (kernel.Outcome, error) {
	switch s.obj.Status.Phase {
	case v1alpha1.RollbackCompleted:
		return kernel.Outcome{Message: s.completed(), RequeueAfter: s.after}, nil
	case v1alpha1.RollbackFinal:
		return kernel.Outcome{Message: s.rolledBack() + s.leftAlone()}, nil
	case v1alpha1.RollbackReverted:
		if s.obj.Status.Error == nil {
			return kernel.Outcome{Message: "undone: the application is as it was before the rollback"}, nil
		}
		return kernel.Outcome{}, kernel.Stalled(v1alpha1.RollbackRevertedReason,
			"the rollback failed, and the application is as it was before: %s", s.obj.Status.Error.Message)
	case v1alpha1.RollbackFailed:
		return kernel.Outcome{}, kernel.Stalled(s.obj.Status.Error.Reason, "%s", s.obj.Status.Error.Message)
	}
	message := progress[s.obj.Status.Phase]
	if s.waits != "" {
		message += ": waiting for " + s.waits
	}
	return kernel.Outcome{Unknown: v1alpha1.ProgressingReason, Message: message, RequeueAfter: s.next()}, nil
}

func (s *scope) rolledBack() string {
	return fmt.Sprintf("rolled back to ApplicationSnapshot %q", s.obj.Spec.Source.SnapshotRef.Name)
}

func (s *scope) completed() string {
	return fmt.Sprintf("%s; the volumes of before are kept for %s: set decision to Confirmed to delete them now, or to Undone to go back%s",
		s.rolledBack(), s.obj.GetUndoPeriod(), s.leftAlone())
}

// leftAlone says what the snapshot does not have.
func (s *scope) leftAlone() string {
	if len(s.obj.Status.Left) == 0 {
		return ""
	}
	names := make([]string, 0, len(s.obj.Status.Left))
	for _, ref := range s.obj.Status.Left {
		names = append(names, fmt.Sprintf("%s %q", ref.Kind, ref.Name))
	}
	return "; not in the snapshot and left as they are: " + excerpt.Texts(names, ", ", shown)
}

// whatIsWhere says what a user needs to know to repair things by hand.
func (s *scope) whatIsWhere(message string) string {
	var volumes []string
	for _, v := range s.obj.Status.Volumes {
		if v.Before != "" {
			volumes = append(volumes, fmt.Sprintf("PersistentVolume %q has the data of before of PersistentVolumeClaim %q (its reclaim policy was %s)", v.Before, v.Claim, v.BeforePolicy))
		}
	}
	said := []string{"the application could not be put back as it was: " + message}
	if s.obj.Status.Error != nil {
		said = append(said, "that was tried because of: "+s.obj.Status.Error.Message)
	}
	if len(volumes) > 0 {
		said = append(said, strings.Join(volumes, ", "))
	}
	said = append(said,
		fmt.Sprintf("ApplicationSnapshot %q has the state of before", s.obj.Status.SafetySnapshot),
		fmt.Sprintf("remove the cause, then set annotation %s to any new value to try again", v1alpha1.ReconcileAtAnnotation))
	return strings.Join(said, "; ")
}
