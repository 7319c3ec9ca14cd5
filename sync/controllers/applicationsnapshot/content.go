package applicationsnapshot

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"waybill.dev/waybill/api/v1alpha1"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// contentReconciler reconciles ApplicationSnapshotContents: it keeps those that are needed, and deletes
// with the others what they hold.
type contentReconciler struct {
	*Reconciler
}

func (r *contentReconciler) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("applicationsnapshotcontent").
		For(&v1alpha1.ApplicationSnapshotContent{}, builder.WithPredicates(kernel.Changed())).
		Watches(&v1alpha1.ApplicationSnapshot{}, handler.EnqueueRequestsFromMapFunc(r.of), builder.WithPredicates(endingOrReady())).
		Watches(&v1alpha1.StatefulApplication{}, handler.EnqueueRequestsFromMapFunc(r.held)).
		Watches(&v1alpha1.ApplicationRollback{}, handler.EnqueueRequestsFromMapFunc(r.held)).
		WithOptions(controller.Options{RateLimiter: kernel.NewLimiter(), MaxConcurrentReconciles: r.Workers}).
		Complete(kernel.Quiet(r))
}

// endingOrReady passes the deletion of a snapshot, from when it is asked for, and that its content is described.
func endingOrReady() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, isSnapshot := e.ObjectOld.(*v1alpha1.ApplicationSnapshot)
			is, _ := e.ObjectNew.(*v1alpha1.ApplicationSnapshot)
			return isSnapshot && (was.DeletionTimestamp.IsZero() && !is.DeletionTimestamp.IsZero() ||
				was.Status.Phase != v1alpha1.SnapshotReady && is.Status.Phase == v1alpha1.SnapshotReady)
		},
	}
}

// of returns the content that a snapshot is bound to.
func (r *contentReconciler) of(_ context.Context, obj client.Object) []reconcile.Request {
	s, ok := obj.(*v1alpha1.ApplicationSnapshot)
	if !ok || s.Status.BoundSnapshotContentName == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: s.Status.BoundSnapshotContentName}}}
}

// held returns the contents that are being deleted.
func (r *contentReconciler) held(ctx context.Context, _ client.Object) []reconcile.Request {
	all := &v1alpha1.ApplicationSnapshotContentList{}
	if err := r.Client.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has been stopped
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if !all.Items[i].DeletionTimestamp.IsZero() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return requests
}

// Reconcile keeps a content as long as it is needed.
func (r *contentReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	obj := &v1alpha1.ApplicationSnapshotContent{}
	if err := r.Client.Get(ctx, req.NamespacedName, obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	class, err := r.class(ctx, obj)
	ours := controllerutil.ContainsFinalizer(obj, v1alpha1.Finalizer)
	if err != nil || !ours && (class == nil || class.Snapshotter != v1alpha1.DataHandler || !obj.DeletionTimestamp.IsZero()) {
		return ctrl.Result{}, err
	}
	policy := obj.Spec.DeletionPolicy
	if policy == "" {
		policy = v1alpha1.DeletionPolicyRetain // the class is gone, and its policy not known: keep it
		if class != nil {
			policy = cmp.Or(class.DeletionPolicy, v1alpha1.DeletionPolicyDelete)
		}
	}
	pass := r.contents.Begin(r.Client, r.Recorder, obj)
	if !obj.DeletionTimestamp.IsZero() {
		if err := r.remove(ctx, obj, policy); err != nil {
			return pass.Finish(ctx, kernel.Outcome{}, err)
		}
		r.contents.Forget(obj.UID)
		return ctrl.Result{}, nil
	}
	if err := kernel.AddFinalizer(ctx, r.Client, obj); err != nil {
		return pass.Finish(ctx, kernel.Outcome{}, err)
	}
	message, err := r.keep(ctx, obj, policy)
	if message == "" && err == nil {
		return ctrl.Result{}, nil // the snapshot describes it, which enqueues it
	}
	return pass.Finish(ctx, kernel.Outcome{Message: message}, err)
}

func (r *contentReconciler) class(ctx context.Context, obj *v1alpha1.ApplicationSnapshotContent) (*v1alpha1.ApplicationSnapshotClass, error) {
	class := &v1alpha1.ApplicationSnapshotClass{}
	err := r.Client.Get(ctx, types.NamespacedName{Name: obj.Spec.SnapshotClassName}, class)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // as callers expect
	}
	if err != nil {
		return nil, fmt.Errorf("get ApplicationSnapshotClass %q: %w", obj.Spec.SnapshotClassName, err)
	}
	return class, nil
}

// keep says which snapshot a content is bound to; nothing as long as that is about to describe it. If that
// snapshot is gone, the policy says what becomes of it: what is to be retained is marked before, since the
// deletion of a namespace does not ask.
func (r *contentReconciler) keep(ctx context.Context, obj *v1alpha1.ApplicationSnapshotContent, policy v1alpha1.DeletionPolicy) (string, error) {
	ref := obj.Spec.SnapshotRef
	if ref == nil || ref.UID == "" {
		return "not bound: an ApplicationSnapshot with an empty source can be", nil
	}
	snapshot, err := r.snapshot(ctx, ref)
	switch {
	case err != nil:
		return "", err
	case snapshot != nil && obj.Status.ObservedGeneration <= 0 && describing(snapshot):
		return "", nil
	case snapshot != nil:
		if policy == v1alpha1.DeletionPolicyRetain && obj.Status.ObservedGeneration != obj.Generation {
			if err := r.volumes.Retain(ctx, obj.Spec.VolumeSnapshotRefs); err != nil {
				return "", err
			}
		}
		return boundBy(ref), nil
	case policy == v1alpha1.DeletionPolicyRetain:
		return fmt.Sprintf("ApplicationSnapshot %q of namespace %q is gone; kept because deletionPolicy is Retain", ref.Name, ref.Namespace), nil
	}
	if err := r.Client.Delete(ctx, obj, client.Preconditions{UID: &obj.UID}); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("delete ApplicationSnapshotContent %q: %w", obj.Name, err)
	}
	return fmt.Sprintf("ApplicationSnapshot %q of namespace %q is gone", ref.Name, ref.Namespace), nil
}

// boundBy says which snapshot a content is bound to.
func boundBy(ref *v1alpha1.NamespacedReference) string {
	return fmt.Sprintf("bound to ApplicationSnapshot %q of namespace %q", ref.Name, ref.Namespace)
}

// describing reports whether a snapshot has not written yet what its content consists of.
func describing(s *v1alpha1.ApplicationSnapshot) bool {
	return s.DeletionTimestamp.IsZero() && s.Status.Phase != v1alpha1.SnapshotReady && s.Status.Phase != v1alpha1.SnapshotFailed
}

// snapshot returns the snapshot that a content is bound to; nil if it is gone.
func (r *contentReconciler) snapshot(ctx context.Context, ref *v1alpha1.NamespacedReference) (*v1alpha1.ApplicationSnapshot, error) {
	found := &v1alpha1.ApplicationSnapshot{}
	err := r.read(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, found)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(found.UID) != ref.UID:
		return nil, nil //nolint:nilnil // as said above
	case err != nil:
		return nil, fmt.Errorf("get ApplicationSnapshot %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	return found, nil
}

// remove deletes what a content holds, unless it is to be kept, as soon as nothing uses it.
func (r *contentReconciler) remove(ctx context.Context, obj *v1alpha1.ApplicationSnapshotContent, policy v1alpha1.DeletionPolicy) error {
	if ref := obj.Spec.SnapshotRef; ref != nil && ref.UID != "" {
		snapshot, err := r.snapshot(ctx, ref)
		if err != nil {
			return err
		}
		if snapshot != nil && snapshot.DeletionTimestamp.IsZero() {
			return kernel.Waiting(v1alpha1.InUseReason, 0, "the content is deleted with ApplicationSnapshot %q of namespace %q, which it is bound to", ref.Name, ref.Namespace)
		}
	}
	user, err := r.user(ctx, obj)
	if err != nil {
		return err
	}
	if user != "" {
		return kernel.Waiting(v1alpha1.InUseReason, 0, "the content is deleted when %s has ended", user)
	}
	if policy != v1alpha1.DeletionPolicyRetain {
		if err := r.volumes.DeleteRefs(ctx, obj.Spec.VolumeSnapshotRefs); err != nil {
			return err
		}
		if handle := obj.Spec.MetadataHandle; handle != nil {
			if err := r.Store.Delete(ctx, *handle); err != nil {
				return hopeless(err)
			}
		}
	}
	return kernel.RemoveFinalizer(ctx, r.Client, obj)
}
