package applicationrollback

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// save takes a snapshot of the application as it is.
func save(ctx context.Context, s *scope) (v1alpha1.RollbackPhase, error) {
	snapshot := &v1alpha1.ApplicationSnapshot{}
	err := s.Live.Get(ctx, s.key(s.obj.Status.SafetySnapshot), snapshot)
	switch {
	case apierrors.IsNotFound(err) && s.obj.Status.SafetySnapshotUID != "":
		return v1alpha1.RollbackSaving, kernel.Stalled(v1alpha1.SafetySnapshotFailedReason, "ApplicationSnapshot %q was deleted before it was ready", s.obj.Status.SafetySnapshot)
	case apierrors.IsNotFound(err):
		snapshot.Name, snapshot.Namespace, snapshot.Spec = s.obj.Status.SafetySnapshot, s.obj.Namespace, s.safetySpec()
		err = s.Live.Create(ctx, snapshot, client.FieldOwner(v1alpha1.FieldManager))
	}
	if err != nil {
		return v1alpha1.RollbackSaving, fmt.Errorf("safety snapshot %q: %w", s.obj.Status.SafetySnapshot, err)
	}
	if err := s.checkSafety(snapshot); err != nil {
		return v1alpha1.RollbackSaving, err
	}
	s.obj.Status.SafetySnapshotUID = string(snapshot.UID)
	switch {
	case snapshot.DeletionTimestamp != nil, snapshot.Status.Phase == v1alpha1.SnapshotFailed:
		why := "it is being deleted"
		if snapshot.Status.Error != nil {
			why = snapshot.Status.Error.Message
		}
		return v1alpha1.RollbackSaving, kernel.Stalled(v1alpha1.SafetySnapshotFailedReason,
			"ApplicationSnapshot %q failed: %s; if the application cannot be brought to rest as its class says, name one with another quiesce in snapshotClassName", snapshot.Name, why)
	case snapshot.Status.Phase != v1alpha1.SnapshotReady || snapshot.Status.BoundSnapshotContentName == "":
		s.waits = fmt.Sprintf("ApplicationSnapshot %q to become ready", snapshot.Name)
		return v1alpha1.RollbackSaving, nil
	}
	return v1alpha1.RollbackHolding, nil
}

// safetySpec is the spec of the snapshot of the application as it is.
func (s *scope) safetySpec() v1alpha1.ApplicationSnapshotSpec {
	return v1alpha1.ApplicationSnapshotSpec{
		SnapshotClassName: s.obj.Spec.SnapshotClassName,
		Source:            v1alpha1.SnapshotSource{Type: v1alpha1.SnapshotSourceApplication, ApplicationName: s.obj.Spec.ApplicationName},
		Tags:              map[string]string{"rollback": s.obj.Name},
		HookPolicy:        v1alpha1.HookPolicyTry, // what does not work is what is rolled back
	}
}

// checkSafety fails if a snapshot is not the one of the application as it is: other users may have created one of its
// name, with what the rollback would put back if it fails, or deleted the one that was taken, and created another. Of one
// that is not known yet, only what cannot be changed counts, and decides what is in it.
func (s *scope) checkSafety(snapshot *v1alpha1.ApplicationSnapshot) error {
	if !s.isSafety(snapshot) {
		return kernel.Stalled(v1alpha1.SafetySnapshotFailedReason,
			"ApplicationSnapshot %q was deleted and created again: it is not of the application as it was before the rollback", snapshot.Name)
	}
	is, wanted := snapshot.Spec, s.safetySpec()
	if is.SnapshotClassName == wanted.SnapshotClassName && is.Source == wanted.Source && is.SnapshotContentName == "" && is.PersistentVolumeClaimFilter == nil {
		return nil
	}
	return kernel.Stalled(v1alpha1.SafetySnapshotFailedReason,
		"ApplicationSnapshot %q is not what ApplicationRollback %q takes of the application as it is: its snapshotClassName, source, snapshotContentName or persistentVolumeClaimFilter differs; delete it, and create the rollback again",
		snapshot.Name, s.obj.Name)
}

// isSafety reports whether a snapshot that has the name is the one that was taken, as far as that is known.
func (s *scope) isSafety(snapshot *v1alpha1.ApplicationSnapshot) bool {
	taken := s.obj.Status.SafetySnapshotUID
	return taken == "" || taken == string(snapshot.UID)
}
