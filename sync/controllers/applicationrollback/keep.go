package applicationrollback

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// keep keeps the volumes of before, until it is decided what becomes of them.
func keep(ctx context.Context, s *scope) (v1alpha1.RollbackPhase, error) {
	if s.obj.Spec.Decision == v1alpha1.RollbackUndone {
		return s.undo(ctx)
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

// undo begins to revert a rollback that is completed.
func (s *scope) undo(ctx context.Context) (v1alpha1.RollbackPhase, error) {
	if err := s.checkUndo(ctx); err != nil {
		return v1alpha1.RollbackCompleted, err
	}
	taking, err := s.taking(ctx)
	if err != nil {
		return v1alpha1.RollbackCompleted, err
	}
	if taking != "" {
		return v1alpha1.RollbackCompleted, waitFor("waiting for ApplicationSnapshot %q to release the application", taking)
	}
	if !s.holds() {
		if err := s.holdAgain(ctx); err != nil {
			return v1alpha1.RollbackCompleted, err
		}
	}
	return v1alpha1.RollbackReverting, nil
}

// holds reports whether what a rollback holds stays held when it is completed.
func (s *scope) holds() bool { return ptr.Deref(s.obj.Spec.Hold, true) }

// letGo releases what is held, if the spec says so.
func (s *scope) letGo(ctx context.Context) error {
	if s.holds() || len(s.obj.Status.Held) == 0 {
		return nil
	}
	return s.release(ctx)
}

// checkUndo checks that the volumes of before are there, that those of after were not replaced, and that no others are
// lost.
func (s *scope) checkUndo(ctx context.Context) error {
	for _, v := range s.obj.Status.Volumes {
		if v.Before != "" {
			if _, err := s.volumes().Policy(ctx, v.Before); err != nil {
				return kernel.Stalled(v1alpha1.UndoRefusedReason, "the rollback cannot be undone: %w", err)
			}
		}
		now, err := s.volumes().Of(ctx, s.obj.Namespace, v.Claim)
		if err != nil {
			return err
		}
		if now != v.After {
			return kernel.Stalled(v1alpha1.UndoRefusedReason,
				"the rollback cannot be undone: PersistentVolumeClaim %q does not have the volume any more that the rollback restored: undo what replaced it first", v.Claim)
		}
	}
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
func again(_ context.Context, s *scope) (v1alpha1.RollbackPhase, error) {
	at := s.obj.Annotations[v1alpha1.ReconcileAtAnnotation]
	if s.isBroken() && at != "" && at != s.obj.Status.LastHandledReconcileAt {
		return v1alpha1.RollbackReverting, nil
	}
	return v1alpha1.RollbackFailed, nil
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
		if err == nil && snapshot.DeletionTimestamp == nil {
			err = s.Live.Delete(ctx, snapshot, client.Preconditions{UID: &snapshot.UID})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete safety snapshot: %w", err)
		}
	}
	s.gone = true
	return nil
}
