package applicationrollback

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/rollback"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// keep keeps the volumes of before, until it is decided what becomes of them.
func keep(ctx context.Context, s *scope) (v1alpha1.RollbackPhase, error) {
	if s.obj.Spec.Decision == v1alpha1.RollbackUndone {
		return v1alpha1.RollbackReverting, s.goBack(ctx, s.mayUndo)
	}
	if err := s.letGo(ctx); err != nil {
		return v1alpha1.RollbackCompleted, err
	}
	left := time.Until(s.obj.Status.CompletionTime.Add(s.obj.GetUndoPeriod()))
	if s.obj.Spec.Decision == v1alpha1.RollbackConfirmed || left <= 0 {
		return v1alpha1.RollbackFinal, nil // rest drops the volumes: once one is gone, the rollback cannot be undone
	}
	s.after = left
	return v1alpha1.RollbackCompleted, nil
}

// mayUndo checks that a rollback that is completed can be undone now, and holds again what has been released.
func (s *scope) mayUndo(ctx context.Context) error {
	if err := s.checkRestores(ctx); err != nil {
		return err
	}
	if err := s.checkUndo(ctx); err != nil {
		return err
	}
	taking, err := s.taking(ctx)
	if err != nil {
		return err
	}
	if taking != "" {
		return waitFor("waiting for ApplicationSnapshot %q to release the application", taking)
	}
	if s.holds() {
		return nil
	}
	if err := s.holdAgain(ctx); err != nil {
		return err
	}
	return s.checkNoneLost(ctx) // of what was not held when it was checked before
}

// holds reports whether what a rollback holds stays held when it is completed.
func (s *scope) holds() bool { return ptr.Deref(s.obj.Spec.Hold, true) }

// goBack has a rollback that has ended go back when no other changes the application, if a check allows that then: the
// volumes of before of that one are those that this one restored. Until then, neither begins.
func (s *scope) goBack(ctx context.Context, check func(context.Context) error) error {
	s.giveBack() // others wait for that, and may hold the lock
	s.starting.Lock()
	defer s.starting.Unlock()
	if err := s.checkTurn(ctx); err != nil {
		return err
	}
	if err := check(ctx); err != nil {
		return err
	}
	return s.enterAlone(func() error { return s.enter(ctx, v1alpha1.RollbackReverting) })
}

// enterAlone enters a phase that no other rollback may be in. If that cannot be written, the status is what it was: else
// the end of the pass would write it, when another may have begun.
func (s *scope) enterAlone(enter func() error) error {
	before := s.obj.Status.DeepCopy()
	err := enter()
	if err != nil {
		s.obj.Status = *before
	}
	return err
}

// letGo releases what is held, if the spec says so.
func (s *scope) letGo(ctx context.Context) error {
	if s.holds() || len(s.obj.Status.Held) == 0 {
		return nil
	}
	return s.release(ctx)
}

// checkUndo checks that the volumes of before are there, that those of after were not replaced, and that no others are
// lost. A claim that is gone, or has lost its volume, has nothing to lose.
func (s *scope) checkUndo(ctx context.Context) error {
	for _, v := range s.obj.Status.Volumes {
		if v.Before != "" {
			_, err := s.volumes().Policy(ctx, v.Before)
			if errors.Is(err, rollback.ErrGone) || errors.Is(err, rollback.ErrForeign) {
				return kernel.Stalled(v1alpha1.UndoRefusedReason, "the rollback cannot be undone: %w", err)
			}
			if err != nil {
				return err
			}
		}
		now, err := s.volumes().Of(ctx, s.obj.Namespace, v.Claim)
		if err != nil {
			return err
		}
		if now != "" && now != v.After {
			return kernel.Stalled(v1alpha1.UndoRefusedReason,
				"the rollback cannot be undone: PersistentVolumeClaim %q does not have the volume any more that the rollback restored: undo what replaced it first", v.Claim)
		}
	}
	return s.checkNoneLost(ctx)
}

// checkNoneLost refuses to undo a rollback if scaling down what it holds would delete claims whose volumes it does not retain.
func (s *scope) checkNoneLost(ctx context.Context) error {
	err := s.checkHeld(ctx)
	if kernel.IsStalled(err) {
		return kernel.Stalled(v1alpha1.UndoRefusedReason, "the rollback cannot be undone: %s", err.Error())
	}
	return err
}

// dropVolumes gives the volumes of before the reclaim policy back that they had, once: what it says happens to
// them, because they have no claim.
func (s *scope) dropVolumes(ctx context.Context) error {
	for i := range s.obj.Status.Volumes {
		v := &s.obj.Status.Volumes[i]
		if v.Before == "" || v.BeforePolicy == "" {
			continue
		}
		err := s.volumes().Release(ctx, v.Claim, v.Before, corev1.PersistentVolumeReclaimPolicy(v.BeforePolicy))
		if err != nil {
			return err
		}
		v.BeforePolicy = ""
	}
	return nil
}

// rest drops the volumes of before of a rollback that is confirmed, and releases what is held if that is decided.
func rest(ctx context.Context, s *scope) (v1alpha1.RollbackPhase, error) {
	if s.obj.Status.Phase == v1alpha1.RollbackFinal {
		if err := s.dropVolumes(ctx); err != nil {
			return s.obj.Status.Phase, err
		}
	}
	if s.obj.Status.Phase == v1alpha1.RollbackFinal && s.obj.Spec.Decision == v1alpha1.RollbackUndone {
		return s.obj.Status.Phase, kernel.Stalled(v1alpha1.UndoRefusedReason, "the rollback cannot be undone: it was confirmed, and the volumes of before are deleted")
	}
	return s.obj.Status.Phase, s.letGo(ctx)
}

// again goes back once more, if a user requests it.
func again(ctx context.Context, s *scope) (v1alpha1.RollbackPhase, error) {
	at := s.obj.Annotations[v1alpha1.ReconcileAtAnnotation]
	if s.isBroken() && at != "" && at != s.obj.Status.LastHandledReconcileAt {
		err := s.goBack(ctx, s.checkVolumesKnown)
		s.unhandled = err != nil && !isFinal(err)
		return v1alpha1.RollbackReverting, err
	}
	return v1alpha1.RollbackFailed, nil
}

// checkVolumesKnown checks that no claim has got a volume that is neither that of before nor the one that was restored:
// to go back would lose what is on it.
func (s *scope) checkVolumesKnown(ctx context.Context) error {
	for _, v := range s.obj.Status.Volumes {
		now, err := s.volumes().Of(ctx, s.obj.Namespace, v.Claim)
		if err != nil {
			return err
		}
		if now != "" && now != v.Before && now != v.After {
			return kernel.Stalled(v1alpha1.UndoRefusedReason,
				"the state before the rollback cannot be restored: PersistentVolumeClaim %q has got another PersistentVolume, %q: undo what replaced it first, then set annotation %s to any new value", v.Claim, now, v1alpha1.ReconcileAtAnnotation)
		}
	}
	return nil
}

// isBroken reports whether neither state could be reached.
func (s *scope) isBroken() bool {
	return s.obj.Status.Phase == v1alpha1.RollbackFailed && len(s.obj.Status.Held)+len(s.obj.Status.Volumes) > 0
}

// leave removes what the rollback has left in the cluster, as it is deleted: marks, volumes of before and
// the safety snapshot. If neither state could be reached, only the marks: the rest may be all that is
// left of the data.
func (s *scope) leave(ctx context.Context) error {
	if s.obj.Status.Phase == v1alpha1.RollbackCompleted || s.obj.Status.Phase == v1alpha1.RollbackFinal {
		if err := s.dropVolumes(ctx); err != nil {
			return err
		}
	}
	broken := s.isBroken()
	if err := s.release(ctx); err != nil {
		return err
	}
	if s.obj.Status.SafetySnapshot != "" && !broken {
		snapshot := &v1alpha1.ApplicationSnapshot{}
		err := s.Live.Get(ctx, s.key(s.obj.Status.SafetySnapshot), snapshot)
		if err == nil && snapshot.DeletionTimestamp == nil && s.isSafety(snapshot) {
			err = s.Live.Delete(ctx, snapshot, client.Preconditions{UID: &snapshot.UID})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete safety snapshot: %w", err)
		}
	}
	s.gone = true
	return nil
}

// abandon gives up the state before with the namespace of the rollback, where nothing can be created any more: what
// becomes of the volumes is what becomes of those of claims that are deleted.
func (s *scope) abandon(ctx context.Context) error {
	for _, v := range s.obj.Status.Volumes {
		policies := map[string]string{v.Before: v.BeforePolicy, v.After: string(corev1.PersistentVolumeReclaimDelete)}
		if v.Swapped {
			policies[v.After] = v.BeforePolicy
		}
		for volume, policy := range policies {
			if volume == "" {
				continue
			}
			if err := s.volumes().LetGo(ctx, volume, corev1.PersistentVolumeReclaimPolicy(policy)); err != nil {
				return err
			}
		}
	}
	if err := s.release(ctx); err != nil {
		return err
	}
	s.gone = true
	return nil
}
