package applicationsnapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/snapshot/metadata"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// end reports a snapshot that is ready or has failed, and deletes it when its time is over.
func (s *scope) end(ctx context.Context) (kernel.Outcome, error) {
	s.r.forget(s.obj)
	if s.obj.Status.CompletionTime == nil { // it has failed
		if err := s.discard(ctx); err != nil {
			return kernel.Outcome{}, err
		}
		s.obj.Status.CompletionTime = ptr.To(metav1.Now())
	}
	outcome := kernel.Outcome{Message: fmt.Sprintf("bound to ApplicationSnapshotContent %q", s.obj.Status.BoundSnapshotContentName)}
	if ttl := s.obj.Spec.TTL.Duration; ttl > 0 {
		left := time.Until(s.obj.Status.CompletionTime.Add(ttl))
		if left <= 0 {
			err := s.r.Client.Delete(ctx, s.obj, client.Preconditions{UID: &s.obj.UID})
			if client.IgnoreNotFound(err) != nil {
				return outcome, fmt.Errorf("delete the snapshot, whose ttl is over: %w", err)
			}
		} else {
			outcome.RequeueAfter = left
		}
	}
	if e := s.obj.Status.Error; e != nil {
		return outcome, kernel.Stalled(e.Reason, "%s", e.Message)
	}
	return outcome, nil
}

// discard deletes what a snapshot made that will not be ready.
func (s *scope) discard(ctx context.Context) error {
	if s.obj.Spec.Source.Type == "" || s.obj.Status.Plan == nil {
		return nil
	}
	handle := metadata.Unsaved(s.obj.UID, s.obj.Status.Plan.Metadata)
	err := s.r.Store.Delete(ctx, handle)
	if errors.Is(err, metadata.ErrNoDirectory) && s.obj.Status.Metadata == nil {
		err = nil // that is why it has failed
	}
	return errors.Join(err, s.r.volumes.Delete(ctx, s.owner(), s.obj.Status.Volumes))
}

// finalize releases the application, and deletes what the policy says. It returns nil once nothing is left
// to do.
func (s *scope) finalize(ctx context.Context) (*kernel.Outcome, error) {
	if s.obj.Status.Plan == nil || s.obj.Status.Phase == v1alpha1.SnapshotFailed {
		return nil, s.discardOnce(ctx)
	}
	s.remember()
	if quiesced(s.obj) {
		if outcome, err := s.giveUp(ctx); outcome != nil || err != nil {
			return outcome, err
		}
	}
	s.leave() // if it was not known that what release wrote has arrived
	content := &v1alpha1.ApplicationSnapshotContent{}
	err := s.r.Direct.Get(ctx, types.NamespacedName{Name: s.contentName()}, content)
	switch {
	case err == nil && s.bound(content):
		if wait, err := s.deleteContent(ctx, content); wait != nil || err != nil {
			return wait, err
		}
	case err == nil, apierrors.IsNotFound(err):
		if s.obj.Status.Phase != v1alpha1.SnapshotReady { // else it was all deleted with the content
			if err := s.discard(ctx); err != nil {
				return nil, err
			}
		}
	default:
		return nil, fmt.Errorf("get ApplicationSnapshotContent %q: %w", s.contentName(), err)
	}
	return nil, s.letGo(ctx)
}

// giveUp releases the application of a snapshot that is deleted while it is taken. It returns nil once that
// is done.
func (s *scope) giveUp(ctx context.Context) (*kernel.Outcome, error) {
	if s.obj.Status.Phase != v1alpha1.SnapshotReleasing {
		s.record(kernel.Stalled(v1alpha1.SnapshotDeletedReason, "the snapshot was deleted while it was taken"))
		s.obj.Status.Phase = v1alpha1.SnapshotReleasing
		if err := s.pass.Write(ctx); err != nil {
			return nil, err
		}
	}
	next, err := s.release(ctx)
	if err != nil {
		return nil, err
	}
	if next == "" {
		return &kernel.Outcome{Unknown: v1alpha1.ProgressingReason, Message: s.message, RequeueAfter: s.after}, nil
	}
	return nil, nil //nolint:nilnil // as said above
}

// deleteContent deletes the content, unless it is to be kept. It returns nil once it is gone, or kept.
func (s *scope) deleteContent(ctx context.Context, content *v1alpha1.ApplicationSnapshotContent) (*kernel.Outcome, error) {
	user, err := s.r.user(ctx, content)
	if err != nil {
		return nil, err
	}
	if user != "" {
		return nil, kernel.Waiting(v1alpha1.InUseReason, 0, "the snapshot is deleted when %s has ended", user)
	}
	policy := content.Spec.DeletionPolicy
	if policy == "" {
		policy = s.obj.Status.Plan.DeletionPolicy
	}
	if policy == v1alpha1.DeletionPolicyRetain {
		return nil, nil //nolint:nilnil // as said above
	}
	err = s.r.Client.Delete(ctx, content, client.Preconditions{UID: &content.UID})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // as said above
	}
	if err != nil {
		return nil, fmt.Errorf("delete ApplicationSnapshotContent %q: %w", content.Name, err)
	}
	return &kernel.Outcome{Unknown: v1alpha1.ProgressingReason, Message: fmt.Sprintf("deleting ApplicationSnapshotContent %q", content.Name)}, nil
}

// discardOnce lets go of a snapshot that has not begun, or has failed.
func (s *scope) discardOnce(ctx context.Context) error {
	if err := s.discard(ctx); err != nil {
		return err
	}
	return s.letGo(ctx)
}

func (s *scope) letGo(ctx context.Context) error {
	if err := kernel.RemoveFinalizer(ctx, s.r.Client, s.obj); err != nil {
		return err
	}
	s.r.forget(s.obj)
	return nil
}
