package gitsync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// remove deletes everything that was delivered from every cluster. If spec.prune is false, it
// deletes nothing. A cluster that cannot be reached blocks the deletion of the GitSync until it is
// back or its KubernetesCluster is deleted.
//
// If the namespace of the GitSync is being deleted, the objects in it are left to that deletion:
// the rights that the GitSync acts with go with the namespace, and it would wait forever. Objects
// elsewhere are still deleted, with the rights that are left and no others.
func (r *Reconciler) remove(ctx context.Context, s *scope) (reconcile.Outcome, error) {
	if err := r.restore(ctx, s); err != nil {
		return reconcile.Outcome{}, err
	}
	var err error
	if s.namespaceGoes, err = r.isGoing(ctx, s.gs.Namespace); err != nil {
		return reconcile.Outcome{}, err
	}
	for _, t := range s.targets() {
		if err := r.leave(ctx, s, t); err != nil {
			return reconcile.Outcome{}, err
		}
	}
	for _, t := range s.targets() {
		switch {
		case t.state.Usable():
			r.takeOut(s, t)
		case !s.gs.GetPrune():
			r.forgetTarget(s, t)
		}
	}
	if s.pending {
		return reconcile.Outcome{Pending: true}, nil
	}
	if len(s.session.targets) == 0 {
		return reconcile.Outcome{Released: true}, nil
	}
	return reconcile.Outcome{}, s.remaining()
}

// isGoing reports whether a namespace of this cluster is being deleted.
func (r *Reconciler) isGoing(ctx context.Context, name string) (bool, error) {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.Clusters.Local().Client().Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return false, fmt.Errorf("get namespace %s: %w", name, err)
	}
	return !namespace.DeletionTimestamp.IsZero(), nil
}

// givingUp is how a deletion goes on without a cluster, to be appended to a message.
const givingUp = "; to give it up, delete the KubernetesCluster with spec.onDelete Abandon"

// remaining says what a deletion waits for.
func (s *scope) remaining() error {
	left, failure := s.undeleted()
	s.session.record.uncollected = false
	for _, t := range s.targets() {
		switch {
		case t.paused():
			return reconcile.Waiting(v1alpha1.SuspendedReason, 0,
				"%s%w: to have what was delivered there deleted, set spec.paused to false%s%s", t.prefix(), t.state.Lost, givingUp, besides(failure))
		case t.state.Lost != nil:
			return reconcile.Waiting(v1alpha1.ClusterUnreachableReason, 0,
				"%s%w; what was delivered there is deleted when it is back%s%s", t.prefix(), t.state.Lost, givingUp, besides(failure))
		}
	}
	if failure != nil {
		return reconcile.Waiting(v1alpha1.DeleteFailedReason, 0, "%w", failure)
	}
	shown := left[:min(len(left), 3)]
	return reconcile.Waiting(v1alpha1.DeletingReason, 0, "waiting for %s%s to be gone", strings.Join(shown, ", "), excerpt.AndMore(len(left)-len(shown)))
}

// undeleted returns the names of what is left in the clusters that can be reached, and why
// something there could not be deleted.
func (s *scope) undeleted() (left []string, failure error) {
	var problems []manifest.Problem
	for _, t := range s.targets() {
		if t.state.Lost != nil {
			continue
		}
		problems = append(problems, t.problems()...)
		if t.state.Result.Err != nil && failure == nil {
			failure = fmt.Errorf("%s%w", t.prefix(), t.state.Result.Err)
		}
		for _, id := range t.state.Result.Inventory {
			text := t.prefix() + id.String()
			if why := t.state.Result.Lingering[id]; why != "" {
				text += " (" + why + ")"
			}
			left = append(left, text)
		}
	}
	if len(problems) > 0 {
		failure = errors.New(summarize(problems, 0, 0))
	}
	slices.Sort(left)
	return left, failure
}

// besides describes a second failure, to be appended to a message.
func besides(failure error) string {
	if failure == nil {
		return ""
	}
	return "; besides: " + failure.Error()
}

// release removes the finalizer of the GitSync and forgets it.
func (r *Reconciler) release(ctx context.Context, s *scope) error {
	if err := reconcile.RemoveFinalizer(ctx, r.Client, s.gs); err != nil {
		return err
	}
	r.released.Drop(s.session.key.NamespacedName)
	r.released.Of(s.session.key.NamespacedName, func() *types.UID { return ptr.To(s.session.key.UID) })
	r.looks.Drop(s.session.key)
	r.loads.Drop(s.session.key)
	r.sessions.Drop(s.session.key)
	r.kernel.Forget(s.gs.UID)
	r.inventories.Forget(s.gs)
	forgetMetrics(s.gs)
	return nil
}
