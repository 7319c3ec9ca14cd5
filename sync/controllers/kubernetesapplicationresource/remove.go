package kubernetesapplicationresource

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// remove deletes the object and the copies of its Secrets from the cluster, and releases the
// resource when they are gone. A cluster whose KubernetesCluster is gone is given up: its
// spec.onDelete has decided what becomes of the objects there.
func (r *Reconciler) remove(ctx context.Context, s *scope) (reconcile.Outcome, error) {
	if s.kc == nil {
		return r.giveUp(ctx, s)
	}
	heir, err := r.heir(ctx, s)
	if err != nil {
		return reconcile.Outcome{}, err
	}
	leaving, staying := s.leaving(heir)
	switch {
	case len(leaving) == 0:
		return reconcile.Outcome{Released: true}, nil
	case s.kc.Spec.Paused:
		return reconcile.Outcome{}, s.lose(reconcile.Waiting(v1alpha1.SuspendedReason, 0,
			"KubernetesCluster %s is paused, so nothing is deleted there: unset spec.paused", s.kc.Name))
	}
	if err := r.engage(s); err != nil {
		return reconcile.Outcome{}, fmt.Errorf("%w; what was delivered there is deleted when it is back; delete its KubernetesCluster with onDelete Abandon to give it up", err)
	}
	if s.outcome != nil {
		return *s.outcome, nil
	}
	digest := fmt.Sprintf("delete %s %q", list(leaving), s.kar.Annotations[v1alpha1.ReconcileAtAnnotation])
	r.do(s, digest, func(w *work, ctx context.Context) apply.Result { return w.remove(ctx, leaving) })
	if s.state.Busy() {
		return s.pending(), nil
	}
	got := s.state.Result
	if got.Inventory != nil {
		s.kar.Status.Inventory = recorded(inventory.Merge(staying, got.Inventory))
	}
	if got.Err == nil && !slices.ContainsFunc(slices.Concat(staying, got.Inventory), s.sameObject) {
		s.show(apply.Status{}) // it is gone, and its status with it
	} else {
		s.showStatus(time.Now())
	}
	left := remaining(got)
	return reconcile.Outcome{Released: left == nil, RequeueAfter: s.showAfter}, left
}

// giveUp releases the resource without deleting anything, unless a KubernetesCluster is there that
// no cache shows yet: another process may have delivered to it. Its event triggers a
// reconciliation.
func (r *Reconciler) giveUp(ctx context.Context, s *scope) (reconcile.Outcome, error) {
	if s.kar.Spec.ClusterName != "" {
		err := r.direct.Get(ctx, s.clusterKey(), &v1alpha1.KubernetesCluster{})
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Outcome{}, fmt.Errorf("get cluster %s: %w", s.kar.Spec.ClusterName, err)
		}
		if err == nil {
			return reconcile.Outcome{Pending: true}, nil
		}
	}
	return reconcile.Outcome{Released: true}, nil
}

// leaving returns what is to be deleted from the cluster, and what was delivered and stays there
// for an heir, which is for the same object: that object, and the copies of the Secrets that the
// heir names too. If there is no heir, nothing stays.
func (s *scope) leaving(heir *v1alpha1.ResourceTemplate) (leaving, staying []manifest.ID) {
	everything := inventory.Merge(s.inventory(), []manifest.ID{s.object()})
	for _, ref := range s.kar.Spec.Secrets {
		everything = inventory.Merge(everything, []manifest.ID{s.copyID(ref.Name)})
	}
	if heir == nil {
		return everything, nil
	}
	for _, id := range everything {
		named := func(ref v1alpha1.ResourceSecretReference) bool { return s.copyID(ref.Name) == id }
		if s.sameObject(id) || slices.ContainsFunc(heir.Spec.Secrets, named) {
			staying = append(staying, id)
			continue
		}
		leaving = append(leaving, id)
	}
	return leaving, staying
}

// remaining returns what a deletion waits for, as an error; nil if it is done.
func remaining(got apply.Result) error {
	switch {
	case got.Err == nil && len(got.Problems) == 0 && len(got.Inventory) == 0:
		return nil
	case got.Err != nil:
		return reconcile.Waiting(v1alpha1.DeleteFailedReason, 0, "%w", got.Err)
	case slices.ContainsFunc(got.Problems, func(p manifest.Problem) bool { return p.Reason == apply.ReasonForbidden }):
		return reconcile.Waiting(v1alpha1.DeleteFailedReason, 0, "%s; grant it in the cluster, or remove finalizer %s to leave there what may be there",
			describe(got.Problems), v1alpha1.Finalizer)
	case len(got.Problems) > 0:
		return reconcile.Waiting(v1alpha1.DeleteFailedReason, 0, "%s", describe(got.Problems))
	default:
		return reconcile.Waiting(v1alpha1.DeletingReason, 0, "waiting for %s to be gone", list(got.Inventory))
	}
}

func list(ids []manifest.ID) string {
	names := make([]string, 0, len(ids))
	for _, id := range ids {
		names = append(names, id.String())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// heir finds out why the resource is being deleted. If its application was created again, for
// example by a restore, and is in the same cluster, its template of the same name and of the same
// object will have a resource again, which takes over what this one delivered: heir returns that
// template. There is no heir if the application dropped the template or is being deleted itself, or
// if a user deleted the resource. If the application is gone without having deleted the resource,
// the garbage collector did, and nothing says that the object is no longer wanted: the error is
// OwnerMissing.
func (r *Reconciler) heir(ctx context.Context, s *scope) (*v1alpha1.ResourceTemplate, error) {
	owner := metav1.GetControllerOf(s.kar)
	if owner == nil || owner.Kind != v1alpha1.KubernetesApplicationKind {
		return nil, nil
	}
	app, err := r.application(ctx, s, owner)
	switch {
	case apierrors.IsNotFound(err):
		return nil, reconcile.Stalled(v1alpha1.OwnerMissingReason,
			"KubernetesApplication %s is gone without having deleted this resource, so %s stays in the cluster: create the application again to go on, "+
				"remove the ownerReference to have it deleted, or remove finalizer %s to leave it there",
			owner.Name, s.object(), v1alpha1.Finalizer)
	case err != nil:
		return nil, fmt.Errorf("get application %s: %w", owner.Name, err)
	case app.UID == owner.UID, !app.DeletionTimestamp.IsZero():
		return nil, nil
	}
	template := s.templateOf(app)
	switch {
	case template == nil:
		return nil, nil
	case app.Spec.ClusterName == "":
		return nil, reconcile.Waiting(v1alpha1.NotScheduledReason, 0, "KubernetesApplication %s was recreated and is not scheduled yet", owner.Name)
	case app.Spec.ClusterName != s.kar.Spec.ClusterName:
		return nil, nil
	default:
		return template, nil
	}
}

// application returns the application that controls the resource. The one in the cache is trusted if
// it is the same one and says that the resource is to go. Otherwise the cache may be behind: the
// application may be gone, and the resource with it.
func (r *Reconciler) application(ctx context.Context, s *scope, owner *metav1.OwnerReference) (*v1alpha1.KubernetesApplication, error) {
	key := types.NamespacedName{Namespace: s.kar.Namespace, Name: owner.Name}
	app := &v1alpha1.KubernetesApplication{}
	err := r.Client.Get(ctx, key, app)
	unwanted := !app.DeletionTimestamp.IsZero() || s.templateOf(app) == nil
	if err != nil || app.UID == owner.UID && unwanted {
		return app, err
	}
	app = &v1alpha1.KubernetesApplication{}
	return app, r.direct.Get(ctx, key, app)
}

// templateOf returns the template of an application for the resource and its object; nil if there is
// none.
func (s *scope) templateOf(app *v1alpha1.KubernetesApplication) *v1alpha1.ResourceTemplate {
	i := slices.IndexFunc(app.Spec.ResourceTemplates, func(t v1alpha1.ResourceTemplate) bool {
		return t.Metadata.Name == s.kar.Name && t.Spec.Template.SameObject(s.kar.Spec.Template)
	})
	if i < 0 {
		return nil
	}
	return &app.Spec.ResourceTemplates[i]
}

// release removes our finalizer from the resource and forgets it.
func (r *Reconciler) release(ctx context.Context, s *scope) error {
	if err := reconcile.RemoveFinalizer(ctx, r.Client, s.kar); err != nil {
		return err
	}
	r.forget(s.session.key.NamespacedName)
	return nil
}
