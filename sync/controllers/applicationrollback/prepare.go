package applicationrollback

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	kernel "waybill.dev/waybill/sync/reconcile"
)

var volumeSnapshotKind = schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1", Kind: "VolumeSnapshot"}

func refused(format string, args ...any) error {
	return kernel.Stalled(v1alpha1.RollbackRefusedReason, format, args...)
}

func waitFor(format string, args ...any) error {
	return kernel.Waiting(v1alpha1.RollbackWaitsReason, 0, format, args...)
}

// prepare checks that the rollback can succeed, and that it is its turn.
func prepare(ctx context.Context, s *scope) (v1alpha1.RollbackPhase, error) {
	for _, check := range []func(context.Context) error{s.checkClass, s.checkTurn, s.checkApplication, s.checkRestores, s.checkSnapshot, s.checkVolumes, s.checkScaling} {
		if err := check(ctx); err != nil {
			return v1alpha1.RollbackPending, err
		}
	}
	s.giveBack()      // others wait for that, and may hold the lock
	s.starting.Lock() // from here on, no other rollback begins
	defer s.starting.Unlock()
	if err := s.checkTurn(ctx); err != nil {
		return v1alpha1.RollbackPending, err
	}
	name := "rollback-" + string(s.obj.UID)
	if err := s.checkNotTaken(ctx, name); err != nil {
		return v1alpha1.RollbackPending, err
	}
	return v1alpha1.RollbackSaving, s.enterAlone(func() error {
		s.obj.Status.SafetySnapshot = name
		return s.enter(ctx, v1alpha1.RollbackSaving)
	})
}

// checkNotTaken fails if there is a snapshot with the name of that of the state before, which has not been taken yet: it
// has an older state, or another one.
func (s *scope) checkNotTaken(ctx context.Context, name string) error {
	err := s.Live.Get(ctx, s.key(name), &v1alpha1.ApplicationSnapshot{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get ApplicationSnapshot %q: %w", name, err)
	}
	live := &v1alpha1.ApplicationRollback{}
	if err := s.Live.Get(ctx, client.ObjectKeyFromObject(s.obj), live); err != nil {
		return fmt.Errorf("get ApplicationRollback %q: %w", s.obj.Name, err)
	}
	if live.Status.SafetySnapshot == name {
		return fmt.Errorf("the cache does not have the status of ApplicationRollback %q yet", s.obj.Name)
	}
	return kernel.Stalled(v1alpha1.SafetySnapshotFailedReason,
		"ApplicationSnapshot %q was created before ApplicationRollback %q takes it of the application as it is; delete it, and create the rollback again", name, s.obj.Name)
}

func (s *scope) checkClass(ctx context.Context) error {
	class := &v1alpha1.ApplicationSnapshotClass{}
	err := s.Live.Get(ctx, client.ObjectKey{Name: s.obj.Spec.SnapshotClassName}, class)
	switch {
	case apierrors.IsNotFound(err):
		return refused("snapshotClassName: ApplicationSnapshotClass %q does not exist", s.obj.Spec.SnapshotClassName)
	case err == nil && class.Snapshotter != v1alpha1.DataHandler:
		return refused("snapshotClassName: ApplicationSnapshotClass %q is not of snapshotter %s", s.obj.Spec.SnapshotClassName, v1alpha1.DataHandler)
	}
	return err
}

func (s *scope) checkApplication(ctx context.Context) error {
	if s.obj.Spec.Source.SnapshotRef == nil {
		return refused("source: only snapshots are supported")
	}
	app, err := s.stateful(ctx)
	if apierrors.IsNotFound(err) {
		return refused("applicationName: StatefulApplication %q does not exist in namespace %q", s.obj.Spec.ApplicationName, s.obj.Namespace)
	}
	if err != nil {
		return err
	}
	name := applicationOf(app)
	s.obj.Status.ApplicationName = name
	err = s.Live.Get(ctx, s.key(name), &v1alpha1.Application{})
	if apierrors.IsNotFound(err) {
		return refused("Application %q does not exist: create a StatefulApplication with a source to restore it", name)
	}
	return err
}

// checkRestores makes the rollback wait until the application is restored: what creates its claims would create those again
// that the rollback replaces.
func (s *scope) checkRestores(ctx context.Context) error {
	all := &v1alpha1.StatefulApplicationList{}
	if err := s.Live.List(ctx, all, client.InNamespace(s.obj.Namespace)); err != nil {
		return fmt.Errorf("list StatefulApplications: %w", err)
	}
	for i := range all.Items {
		app := &all.Items[i]
		if app.GetApplicationName() == s.obj.Status.ApplicationName && isRestoring(app) {
			return waitFor("waiting for StatefulApplication %q to restore the application", app.Name)
		}
	}
	return nil
}

// isRestoring reports whether a StatefulApplication creates objects, and creates those again that are deleted.
func isRestoring(app *v1alpha1.StatefulApplication) bool {
	restore := app.Status.Restore
	return restore != nil && (restore.Phase == v1alpha1.RestoreClaims || restore.Phase == v1alpha1.RestoreObjects)
}

// stateful returns the StatefulApplication that is rolled back.
func (s *scope) stateful(ctx context.Context) (*v1alpha1.StatefulApplication, error) {
	app := &v1alpha1.StatefulApplication{}
	return app, s.Live.Get(ctx, s.key(s.obj.Spec.ApplicationName), app)
}

// applicationOf returns the name of the Application.
func applicationOf(app *v1alpha1.StatefulApplication) string {
	return cmp.Or(app.Spec.ApplicationName, app.Name)
}

// checkSnapshot checks that the snapshot is one of this application, and ready.
func (s *scope) checkSnapshot(ctx context.Context) error {
	ref := s.obj.Spec.Source.SnapshotRef
	if ref.Namespace != "" && ref.Namespace != s.obj.Namespace {
		return refused("source: ApplicationSnapshot %q is in namespace %q: an application is rolled back to a snapshot of its own namespace", ref.Name, ref.Namespace)
	}
	snapshot := &v1alpha1.ApplicationSnapshot{}
	err := s.Live.Get(ctx, s.key(ref.Name), snapshot)
	switch {
	case apierrors.IsNotFound(err) || err == nil && snapshot.DeletionTimestamp != nil:
		return refused("source: ApplicationSnapshot %q does not exist, or is being deleted", ref.Name)
	case err != nil:
		return err
	case !ref.Matches(snapshot.UID):
		return refused("source: ApplicationSnapshot %q was replaced by another one", ref.Name)
	case snapshot.Status.Phase == v1alpha1.SnapshotFailed:
		return refused("source: ApplicationSnapshot %q has failed", ref.Name)
	case snapshot.Status.Phase != v1alpha1.SnapshotReady || snapshot.Status.BoundSnapshotContentName == "":
		return waitFor("waiting for ApplicationSnapshot %q to become ready", ref.Name)
	}
	content := &v1alpha1.ApplicationSnapshotContent{}
	err = s.Live.Get(ctx, client.ObjectKey{Name: snapshot.Status.BoundSnapshotContentName}, content)
	switch bound := content.Spec.SnapshotRef; {
	case apierrors.IsNotFound(err):
		return refused("source: ApplicationSnapshotContent %q does not exist", snapshot.Status.BoundSnapshotContentName)
	case err != nil:
		return err
	case bound == nil || bound.Namespace != snapshot.Namespace || bound.Name != snapshot.Name || bound.UID != string(snapshot.UID):
		return refused("source: ApplicationSnapshotContent %q is not bound to ApplicationSnapshot %q", content.Name, snapshot.Name)
	case content.Status.ApplicationName != s.obj.Spec.ApplicationName:
		return refused("source: ApplicationSnapshot %q is one of StatefulApplication %q, not of %q", ref.Name, content.Status.ApplicationName, s.obj.Spec.ApplicationName)
	}
	s.obj.Status.ContentName = content.Name
	return nil
}

// checkVolumes checks that every volume of the snapshot can be restored, and take the place of the one
// that is there.
func (s *scope) checkVolumes(ctx context.Context) error {
	d, err := s.source(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(d.content.Spec.VolumeSnapshotRefs)) {
		ref := d.content.Spec.VolumeSnapshotRefs[name]
		claim := d.claims[name]
		switch {
		case claim == nil:
			return refused("source: the snapshot has no definition of PersistentVolumeClaim %q", name)
		case ref.Namespace != s.obj.Namespace:
			return refused("source: VolumeSnapshot %q is in namespace %q: restore the snapshot instead", ref.Name, ref.Namespace)
		}
		if _, err := s.restoreSize(ctx, ref); err != nil {
			return err
		}
		if class := ptr.Deref(claim.Spec.StorageClassName, ""); class != "" {
			err := s.Live.Get(ctx, client.ObjectKey{Name: class}, &storagev1.StorageClass{})
			if apierrors.IsNotFound(err) {
				return refused("StorageClass %q of PersistentVolumeClaim %q does not exist: create it", class, name)
			}
			if err != nil {
				return err
			}
		}
		if err := s.checkClaim(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// checkClaim checks a claim whose volume is to be replaced.
func (s *scope) checkClaim(ctx context.Context, name string) error {
	claim := &corev1.PersistentVolumeClaim{}
	err := s.Live.Get(ctx, s.key(name), claim)
	switch {
	case apierrors.IsNotFound(err):
		return nil // it is created
	case err != nil:
		return err
	case claim.DeletionTimestamp != nil:
		return refused("PersistentVolumeClaim %q is being deleted", name)
	case isResizing(claim):
		s.watches = true
		message := "waiting for PersistentVolumeClaim %q to be resized"
		if has(claim, corev1.PersistentVolumeClaimFileSystemResizePending) {
			message += ": its file system is made larger when a Pod uses it"
		}
		return waitFor(message, name)
	}
	return nil
}

// isResizing reports whether the volume of a claim is being made larger.
func isResizing(claim *corev1.PersistentVolumeClaim) bool {
	if claim.Status.Phase != corev1.ClaimBound {
		return false
	}
	wanted, is := claim.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
	return wanted.Cmp(is) > 0 || has(claim, corev1.PersistentVolumeClaimResizing) || has(claim, corev1.PersistentVolumeClaimFileSystemResizePending)
}

// has reports whether a condition of a claim is true.
func has(claim *corev1.PersistentVolumeClaim, condition corev1.PersistentVolumeClaimConditionType) bool {
	return slices.ContainsFunc(claim.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
		return c.Type == condition && c.Status == corev1.ConditionTrue
	})
}

// restoreSize returns the least size of a volume that is made from a VolumeSnapshot, which must be ready, and the one
// that was taken.
func (s *scope) restoreSize(ctx context.Context, ref v1alpha1.NamespacedReference) (string, error) {
	snapshot := &unstructured.Unstructured{}
	snapshot.SetGroupVersionKind(volumeSnapshotKind)
	err := s.Live.Get(ctx, s.key(ref.Name), snapshot)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || err == nil && snapshot.GetDeletionTimestamp() != nil:
		return "", refused("source: VolumeSnapshot %q does not exist, or is being deleted", ref.Name)
	case err != nil:
		return "", err
	case ref.UID != "" && ref.UID != string(snapshot.GetUID()):
		return "", refused("source: VolumeSnapshot %q was deleted and created again: roll back to another snapshot", ref.Name)
	}
	if ready, _, _ := unstructured.NestedBool(snapshot.Object, "status", "readyToUse"); !ready {
		return "", refused("source: VolumeSnapshot %q is not ready to use", ref.Name)
	}
	size, _, _ := unstructured.NestedString(snapshot.Object, "status", "restoreSize")
	return size, nil
}

// checkTurn makes one rollback of an application wait for another, or of its claims: for one that runs, and before it has
// begun also for one that waits and is older.
func (s *scope) checkTurn(ctx context.Context) error {
	all := &v1alpha1.ApplicationRollbackList{}
	if err := s.Live.List(ctx, all, client.InNamespace(s.obj.Namespace)); err != nil {
		return fmt.Errorf("list ApplicationRollbacks: %w", err)
	}
	for i := range all.Items {
		other := &all.Items[i]
		phase := other.Status.Phase
		runs := isUnderWay(phase) || phase == v1alpha1.RollbackSaving
		comes := phase == v1alpha1.RollbackPending && s.obj.Status.Phase == v1alpha1.RollbackPending && older(other, s.obj)
		switch {
		case other.UID == s.obj.UID:
		case (runs || comes) && ofSameApplication(other, s.obj):
			return waitFor("waiting for ApplicationRollback %q of the same application", other.Name)
		case runs:
			claim, err := s.sharedClaim(ctx, other)
			if err != nil {
				return err
			}
			if claim != "" {
				return waitFor("waiting for ApplicationRollback %q, which replaces the volume of PersistentVolumeClaim %q as well", other.Name, claim)
			}
		}
	}
	return nil
}

// ofSameApplication reports whether two rollbacks change one application. Several StatefulApplications may be of one
// Application.
func ofSameApplication(a, b *v1alpha1.ApplicationRollback) bool {
	return a.Spec.ApplicationName == b.Spec.ApplicationName ||
		a.Status.ApplicationName != "" && a.Status.ApplicationName == b.Status.ApplicationName
}

// sharedClaim returns a claim whose volume is replaced by both rollbacks; empty if there is none.
func (s *scope) sharedClaim(ctx context.Context, other *v1alpha1.ApplicationRollback) (string, error) {
	mine, err := s.claimsOf(ctx, s.obj)
	if err != nil {
		return "", err
	}
	theirs, err := s.claimsOf(ctx, other)
	if at := slices.IndexFunc(mine, func(c string) bool { return slices.Contains(theirs, c) }); at >= 0 {
		return mine[at], nil
	}
	return "", err
}

// claimsOf returns the claims of a rollback, also of one that has not recorded them yet.
func (s *scope) claimsOf(ctx context.Context, r *v1alpha1.ApplicationRollback) ([]string, error) {
	var names []string
	for _, v := range r.Status.Volumes {
		names = append(names, v.Claim)
	}
	if len(names) > 0 || r.Status.ContentName == "" {
		return names, nil
	}
	content := &v1alpha1.ApplicationSnapshotContent{}
	if err := s.Live.Get(ctx, client.ObjectKey{Name: r.Status.ContentName}, content); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get ApplicationSnapshotContent %q: %w", r.Status.ContentName, err)
	}
	return slices.Sorted(maps.Keys(content.Spec.VolumeSnapshotRefs)), nil
}

func older(a, b *v1alpha1.ApplicationRollback) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(string(a.UID), string(b.UID))) < 0
}
