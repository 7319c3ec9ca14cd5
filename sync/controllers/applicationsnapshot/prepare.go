package applicationsnapshot

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/snapshot/contents"
	"waybill.dev/waybill/sync/deliver/hold"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// begin makes the snapshot ours. It reports whether it is of a class of another controller. A class
// that does not exist has no controller.
func (s *scope) begin(ctx context.Context) (foreign bool, err error) {
	if s.obj.Status.Plan != nil {
		return false, nil
	}
	class := &v1alpha1.ApplicationSnapshotClass{}
	err = s.r.read(ctx, types.NamespacedName{Name: s.obj.Spec.SnapshotClassName}, class)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil // for the first step to say
	case err != nil:
		return false, fmt.Errorf("get ApplicationSnapshotClass %q: %w", s.obj.Spec.SnapshotClassName, err)
	case class.Snapshotter != v1alpha1.DataHandler:
		return true, nil
	}
	return false, kernel.AddFinalizer(ctx, s.r.Client, s.obj)
}

// prepare checks that the snapshot can succeed, and records how it is taken.
func (s *scope) prepare(ctx context.Context) (v1alpha1.SnapshotPhase, error) {
	class := &v1alpha1.ApplicationSnapshotClass{}
	err := s.r.read(ctx, types.NamespacedName{Name: s.obj.Spec.SnapshotClassName}, class)
	switch {
	case apierrors.IsNotFound(err):
		return "", kernel.Stalled(v1alpha1.ClassNotFoundReason, "ApplicationSnapshotClass %q does not exist", s.obj.Spec.SnapshotClassName)
	case err != nil:
		return "", fmt.Errorf("get ApplicationSnapshotClass %q: %w", s.obj.Spec.SnapshotClassName, err)
	}
	plan := &v1alpha1.SnapshotPlan{
		Quiesce: cmp.Or(class.Quiesce, v1alpha1.QuiesceHooks), PreHooks: class.PreHooks, PostHooks: class.PostHooks,
		Metadata:       cmp.Or(class.Metadata, v1alpha1.MetadataObject),
		DeletionPolicy: cmp.Or(class.DeletionPolicy, v1alpha1.DeletionPolicyDelete),
	}
	if s.obj.Spec.Source.Type == "" {
		s.obj.Status.Plan = plan
		return v1alpha1.SnapshotBinding, nil
	}
	if plan.ApplicationName, err = s.application(ctx); err != nil {
		return "", err
	}
	if err := s.checkContent(ctx); err != nil {
		return "", err
	}
	if !s.hasTurn() {
		return "", nil
	}
	// A cache that is behind is noticed before anything is stored, see checkRollbacks: then, the API server is asked.
	reader := client.Reader(s.r.Client)
	if s.session.behind {
		reader = s.r.Direct
	}
	known, err := s.rollbacks(ctx, plan.ApplicationName, reader)
	if err != nil {
		return "", err
	}
	if rollback := known.first(hold.UnderWay); rollback != "" {
		s.leave()
		s.message = fmt.Sprintf("waiting for ApplicationRollback %q of the application to end", rollback)
		return "", nil
	}
	found, err := s.r.Finder.Find(ctx, s.obj.Namespace, plan.ApplicationName)
	if err != nil {
		return "", unfit(err)
	}
	claims, err := s.selected(found)
	if err != nil {
		return "", err
	}
	chosen, err := s.r.volumes.Choose(ctx, s.owner(), class, claims)
	if err != nil {
		return "", err
	}
	if err := s.checkQuiesce(ctx, plan, found, claims); err != nil {
		return "", err
	}
	s.obj.Status.Plan, s.obj.Status.Volumes = plan, chosen
	s.session.contents, s.session.rollbacks, s.surveyed = found, known.versions(), true
	return v1alpha1.SnapshotCapturing, nil
}

// application returns the name of the Application that is snapshotted.
func (s *scope) application(ctx context.Context) (string, error) {
	if s.obj.Spec.Source.Type != v1alpha1.SnapshotSourceApplication {
		return "", kernel.Stalled(v1alpha1.ApplicationNotFoundReason, "spec.source.type %s is not supported yet", s.obj.Spec.Source.Type)
	}
	of := &v1alpha1.StatefulApplication{}
	err := s.r.read(ctx, types.NamespacedName{Namespace: s.obj.Namespace, Name: s.obj.Spec.Source.ApplicationName}, of)
	switch {
	case apierrors.IsNotFound(err):
		return "", kernel.Stalled(v1alpha1.ApplicationNotFoundReason, "StatefulApplication %q does not exist in namespace %q",
			s.obj.Spec.Source.ApplicationName, s.obj.Namespace)
	case err != nil:
		return "", fmt.Errorf("get StatefulApplication %q: %w", s.obj.Spec.Source.ApplicationName, err)
	case restoring(of):
		return "", kernel.Stalled(v1alpha1.ApplicationNotFoundReason, "StatefulApplication %q is being restored: create another ApplicationSnapshot when it is ready", of.Name)
	}
	return of.GetApplicationName(), nil
}

// restoring reports whether a restore of the application is under way.
func restoring(a *v1alpha1.StatefulApplication) bool {
	return a.Status.Restore != nil && a.Status.Restore.Phase != v1alpha1.RestoreCompleted && a.Status.Restore.Phase != v1alpha1.RestoreFailed
}

// selected returns the claims that are snapshotted.
func (s *scope) selected(found *contents.Contents) ([]contents.Claim, error) {
	if s.obj.Spec.PersistentVolumeClaimFilter == nil {
		return found.Claims, nil
	}
	filter, err := metav1.LabelSelectorAsSelector(s.obj.Spec.PersistentVolumeClaimFilter)
	if err != nil {
		return nil, kernel.Stalled(v1alpha1.VolumeNotSupportedReason, "spec.persistentVolumeClaimFilter: %w", err)
	}
	var claims []contents.Claim
	for _, claim := range found.Claims {
		if filter.Matches(labels.Set(claim.GetLabels())) {
			claims = append(claims, claim)
		}
	}
	return claims, nil
}

// checkContent fails if another content has the name of the one to be created. None has a name that we choose.
func (s *scope) checkContent(ctx context.Context) error {
	if s.obj.Spec.SnapshotContentName == "" {
		return nil
	}
	content := &v1alpha1.ApplicationSnapshotContent{}
	err := s.r.Direct.Get(ctx, types.NamespacedName{Name: s.contentName()}, content)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("get ApplicationSnapshotContent %q: %w", s.contentName(), err)
	case s.bound(content):
		return nil
	}
	return kernel.Stalled(v1alpha1.ContentConflictReason, "ApplicationSnapshotContent %q already exists: choose another spec.snapshotContentName, or leave spec.source empty to bind to it", content.Name)
}
