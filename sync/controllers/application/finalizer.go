package application

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/controllers/application/tracker"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/reconcile"
)

// removalLimit is how long a deletion waits for ownerReferences that cannot be removed.
const removalLimit = time.Minute

// holds reports whether the Application carries our finalizer.
func holds(app *v1alpha1.Application) bool {
	return controllerutil.ContainsFinalizer(app, v1alpha1.OwnershipFinalizer)
}

// needsHold reports whether something must be done before the Application may be deleted: it owns
// objects, or has the Pod of a health check, which --cascade=orphan would leave behind.
func needsHold(app *v1alpha1.Application) bool {
	return app.Spec.Ownership != v1alpha1.OwnershipObserve || app.Spec.HealthCheck != nil
}

// hold adds the finalizer to an Application before it owns anything or has a Pod. If that
// fails, the Application is left without.
func (r *Reconciler) hold(ctx context.Context, app *v1alpha1.Application) error {
	if !app.DeletionTimestamp.IsZero() || !needsHold(app) || holds(app) {
		return nil
	}
	before := app.DeepCopy()
	controllerutil.AddFinalizer(app, v1alpha1.OwnershipFinalizer)
	if err := r.patchMetadata(ctx, app, before); err != nil {
		controllerutil.RemoveFinalizer(app, v1alpha1.OwnershipFinalizer)
		return err
	}
	return nil
}

// refusal returns the reason for which the API server refuses the finalizer, such as admission that
// did not know the Application when it was written; empty if it does not. Nothing is wrong with the
// spec that we could see, so the words of the API server are all there is to say.
func refusal(err error) string {
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return v1alpha1.InvalidSpecReason
	case apierrors.IsForbidden(err):
		return v1alpha1.ForbiddenReason
	default:
		return ""
	}
}

// refusedToHold reports that the finalizer was refused. Nothing is owned without it. It is tried again, as
// no event announces other rules.
func (s *scope) refusedToHold() (reconcile.Outcome, error) {
	reason, err := refusal(s.unheld), watch.Stable(s.unheld)
	conditions.MarkFalse(s.app, v1alpha1.ComponentsReadyCondition, reason, "%s", err)
	return reconcile.Outcome{Beside: reconcile.Failed(reason, "%w", err)}, reconcile.Stalled(reason, "%w", err)
}

// letGo removes the finalizer from an Application that no longer needs it, once nothing is left of
// what it was for and the status says so.
func (r *Reconciler) letGo(ctx context.Context, app *v1alpha1.Application) error {
	if !app.DeletionTimestamp.IsZero() || needsHold(app) || !holds(app) || !r.ownsNothing(app) {
		return nil
	}
	pods, known, failure := r.pods.of(client.ObjectKeyFromObject(app), app.UID)
	unanswered := !known && (failure == nil || errors.Is(failure, errNoPods))
	if unanswered || len(pods) > 0 {
		return nil
	}
	return r.release(ctx, app)
}

func (r *Reconciler) patchMetadata(ctx context.Context, app, before *v1alpha1.Application) error {
	err := r.patches.Patch(ctx, app, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}),
		client.FieldOwner(v1alpha1.OwnershipFieldManager))
	if err != nil {
		return fmt.Errorf("write finalizers: %w", err)
	}
	return nil
}

// ownsNothing reports whether it is certain that no object refers to the Application: every kind is
// watched or not served, and the last status says so too.
func (r *Reconciler) ownsNothing(app *v1alpha1.Application) bool {
	if r.keeper.Giving(app.UID) || len(r.tracker.By(ownerKey(app.Namespace, app.UID))) > 0 {
		return false
	}
	for _, c := range app.Status.Components {
		if c.Owned {
			return false
		}
	}
	for gk := range wantedKinds(app) {
		switch r.tracker.State(gk).Phase {
		case tracker.Starting, tracker.Failing, tracker.Denied:
			return false
		}
	}
	return true
}

// remove removes the finalizer of a deleted Application once no object refers to it that is not its
// component, or that is to be orphaned: otherwise the garbage collector would delete more than was
// listed. It does not wait for kinds that are not served or may not be watched; for references that
// cannot be removed it waits for removalLimit. What is still uncertain then is named in an event.
func (r *Reconciler) remove(ctx context.Context, s *scope) (reconcile.Outcome, error) {
	if !holds(s.app) {
		return reconcile.Outcome{Pending: true}, nil
	}
	if s.entry.orphaning { // the next process must know it, too
		conditions.MarkTrue(s.app, v1alpha1.OrphaningCondition, v1alpha1.DeletingReason, "it is deleted with --cascade=orphan")
	}
	left := removalLimit - time.Since(s.entry.since)
	if message := r.waitsFor(s); message != "" && left > 0 {
		return reconcile.Outcome{Unknown: v1alpha1.DeletingReason, Message: message, RequeueAfter: left + time.Second}, nil
	}
	if err := r.removePods(ctx, s.app); err != nil && left > 0 {
		return reconcile.Outcome{}, reconcile.Failed(v1alpha1.DeleteFailedReason, "delete the Pod of the health check: %w", err)
	}
	r.warnOfLeftovers(s)
	return reconcile.Outcome{Released: true}, nil
}

// waitsFor returns what a deletion waits for; empty if nothing blocks it.
func (r *Reconciler) waitsFor(s *scope) string {
	unseen := r.unseen(s, tracker.Starting, tracker.Failing)
	switch {
	case len(s.stale) > 0:
		message := "ownerReferences are being removed from objects that must not be deleted with the Application: " + s.staleNames()
		for _, o := range s.stale {
			if problem := r.keeper.Problem(o.Ref); problem != nil {
				return fmt.Sprintf("%s; %s", message, problem)
			}
		}
		return message
	case r.keeper.Giving(s.app.UID):
		return "an ownerReference is still being written"
	case len(unseen) > 0:
		return "cannot determine which objects refer to the Application: " + strings.Join(unseen, "; ")
	default:
		return ""
	}
}

// unseen returns the kinds, in one of the given phases, of which it is not known what refers to the
// Application, and why.
func (r *Reconciler) unseen(s *scope, phases ...tracker.Phase) []string {
	var kinds []string
	for gk := range s.entry.wanted {
		state := r.tracker.State(gk)
		switch {
		case !slices.Contains(phases, state.Phase):
		case state.Err == nil:
			kinds = append(kinds, gk.String()+" is not listed yet")
		default:
			kinds = append(kinds, state.Err.Error())
		}
	}
	slices.Sort(kinds)
	return kinds
}

// removePods deletes the Pods of the health check as the API server lists them: the watch may be
// behind, and with --cascade=orphan the garbage collector removes their ownerReference.
func (r *Reconciler) removePods(ctx context.Context, app *v1alpha1.Application) error {
	if known, _, _ := r.pods.of(client.ObjectKeyFromObject(app), app.UID); app.Spec.HealthCheck == nil && len(known) == 0 {
		return nil
	}
	list, err := r.Cluster.Metadata().Resource(podResource).Namespace(app.Namespace).List(ctx,
		metav1.ListOptions{LabelSelector: v1alpha1.HealthCheckLabel + "=" + healthCheckLabel(app)})
	if err != nil {
		return watch.Stable(err)
	}
	var pods []*pod
	for i := range list.Items {
		p := reducePod(&list.Items[i])
		orphaned := len(list.Items[i].OwnerReferences) == 0 && list.Items[i].Annotations[v1alpha1.ApplicationAnnotation] == app.Name
		if p.ownerUID == app.UID || orphaned {
			pods = append(pods, p)
		}
	}
	return r.deletePods(ctx, pods, "")
}

// warnOfLeftovers sends an event about what may be deleted with the Application although it should
// not be.
func (r *Reconciler) warnOfLeftovers(s *scope) {
	var notes []string
	if len(s.stale) > 0 {
		notes = append(notes, "cannot remove the ownerReferences of "+s.staleNames())
	}
	if unseen := r.unseen(s, tracker.Starting, tracker.Failing, tracker.Denied); len(unseen) > 0 {
		notes = append(notes, "cannot determine which objects refer to the Application: "+excerpt.Names(unseen, maxNames))
	}
	if owned := r.lastSeenOwned(s); len(owned) > 0 {
		notes = append(notes, "it was last seen to own "+excerpt.Names(owned, maxNames)+", which are not components")
	}
	if len(notes) > 0 {
		s.pass.Tell(reconcile.Event{Type: corev1.EventTypeWarning, Reason: v1alpha1.DeleteFailedReason, Action: "Delete",
			Note: strings.Join(notes, "; ") + "; the garbage collector deletes with the Application what refers to it, listed or not"})
	}
}

// lastSeenOwned returns the objects that were not components but still referred to the Application
// when they could last be seen.
func (r *Reconciler) lastSeenOwned(s *scope) []string {
	var names []string
	for _, c := range s.app.Status.Components {
		phase := r.tracker.State(schema.GroupKind{Group: c.Group, Kind: c.Kind}).Phase
		if c.Owned && !c.Installed && phase != tracker.Watched && phase != tracker.Unknown {
			names = append(names, componentName(c.Group, c.Kind, c.Name))
		}
	}
	return names
}

// maxNames is how many names one message lists.
const maxNames = 5

func (s *scope) staleNames() string {
	names := make([]string, 0, len(s.stale))
	for _, o := range s.stale {
		names = append(names, componentName(o.Group, o.Kind, o.Name))
	}
	slices.Sort(names)
	return excerpt.Names(names, maxNames)
}

// release removes the finalizer.
func (r *Reconciler) release(ctx context.Context, app *v1alpha1.Application) error {
	before := app.DeepCopy()
	controllerutil.RemoveFinalizer(app, v1alpha1.OwnershipFinalizer)
	return r.patchMetadata(ctx, app, before)
}
