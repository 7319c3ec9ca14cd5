package application

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/census"
	"waybill.dev/waybill/sync/reconcile"
)

// removalLimit is how long a deletion waits for references that cannot be taken off.
const removalLimit = time.Minute

// holds tells whether the Application carries our finalizer.
func holds(app *v1alpha1.Application) bool {
	return controllerutil.ContainsFinalizer(app, v1alpha1.OwnershipFinalizer)
}

// hold gives an Application that owns the finalizer, before it owns anything (C42).
func (r *Reconciler) hold(ctx context.Context, app *v1alpha1.Application) error {
	if !app.DeletionTimestamp.IsZero() || app.Spec.Ownership == v1alpha1.OwnershipObserve || holds(app) {
		return nil
	}
	before := app.DeepCopy()
	controllerutil.AddFinalizer(app, v1alpha1.OwnershipFinalizer)
	return r.patchMetadata(ctx, app, before)
}

// letGo takes the finalizer off an Application that does not own any more, when nothing is
// left of that, and its status says so.
func (r *Reconciler) letGo(ctx context.Context, app *v1alpha1.Application) error {
	if !app.DeletionTimestamp.IsZero() || app.Spec.Ownership != v1alpha1.OwnershipObserve || !holds(app) || !r.ownsNothing(app) {
		return nil
	}
	return r.release(ctx, app)
}

func (r *Reconciler) patchMetadata(ctx context.Context, app, before *v1alpha1.Application) error {
	err := r.Client.Patch(ctx, app, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(v1alpha1.OwnershipFieldManager))
	if err != nil {
		return fmt.Errorf("write finalizers: %w", err)
	}
	return nil
}

// ownsNothing tells whether it is certain that no object refers to the Application: all kinds
// are seen, and what was written of them last says so too.
func (r *Reconciler) ownsNothing(app *v1alpha1.Application) bool {
	if len(r.census.By(ownerKey(app.Namespace, app.UID))) > 0 {
		return false
	}
	for _, c := range app.Status.Components {
		if c.Owned {
			return false
		}
	}
	for gk := range wantedKinds(app) {
		switch r.census.State(gk).Phase {
		case census.Starting, census.Failing, census.Denied:
			return false
		}
	}
	return true
}

// remove lets a deleted Application go when no object refers to it that is not its component:
// else the garbage collector would delete more than was listed (C42). Kinds that are not
// served, or may not be watched, are not waited for; what cannot be taken off is, for
// removalLimit, and then named in an event.
func (r *Reconciler) remove(ctx context.Context, s *scope) (reconcile.Outcome, error) {
	if !holds(s.app) {
		return reconcile.Outcome{Pending: true}, nil
	}
	left := removalLimit - time.Since(s.entry.since)
	pods, known, failure := r.pods.of(s.key, s.app.UID)
	if !known && failure == nil && left > 0 {
		return reconcile.Outcome{Pending: true, RequeueAfter: left + time.Second}, nil
	}
	if err := r.deletePods(ctx, pods, ""); err != nil && left > 0 { // the garbage collector deletes them as well
		return reconcile.Outcome{}, reconcile.Failed(v1alpha1.DeleteFailedReason, "delete the Pod of the health check: %w", err)
	}
	waiting := len(s.stale) > 0 || r.unseen(s)
	if !waiting || left <= 0 {
		s.warnOfStale()
		s.released = true
		return reconcile.Outcome{}, nil
	}
	message := "ownerReferences are being taken off objects that are no components: " + s.staleNames()
	for _, o := range s.stale {
		if problem := r.keeper.Problem(o.Ref); problem != nil {
			message = fmt.Sprintf("%s; %s", message, problem)
			break
		}
	}
	return reconcile.Outcome{Unknown: v1alpha1.DeletingReason, Message: message, RequeueAfter: left + time.Second}, nil
}

// unseen tells whether there is a kind of which it will soon be known what refers to the
// Application.
func (r *Reconciler) unseen(s *scope) bool {
	for gk := range s.entry.wanted {
		if phase := r.census.State(gk).Phase; phase == census.Starting || phase == census.Failing {
			return true
		}
	}
	return false
}

// warnOfStale says what is deleted with the Application although it is not listed.
func (s *scope) warnOfStale() {
	if len(s.stale) > 0 {
		s.pass.Tell(reconcile.Event{Type: corev1.EventTypeWarning, Reason: v1alpha1.DeleteFailedReason, Action: "Delete", Note: fmt.Sprintf(
			"ownerReferences could not be taken off %s, which are no components: the garbage collector deletes them with the Application", s.staleNames())})
	}
}

// maxNames is how many names one message has.
const maxNames = 5

func (s *scope) staleNames() string {
	names := make([]string, 0, maxNames)
	for _, o := range s.stale[:min(len(s.stale), maxNames)] {
		names = append(names, componentName(o.Group, o.Kind, o.Name))
	}
	text := strings.Join(names, ", ")
	if more := len(s.stale) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// release takes the finalizer off.
func (r *Reconciler) release(ctx context.Context, app *v1alpha1.Application) error {
	before := app.DeepCopy()
	controllerutil.RemoveFinalizer(app, v1alpha1.OwnershipFinalizer)
	return r.patchMetadata(ctx, app, before)
}
