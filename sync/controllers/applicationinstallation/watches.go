package applicationinstallation

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/render"
	"waybill.dev/waybill/sync/source/subscription"
)

const (
	defaultWorkers = 4
	defaultActions = 10
	fetchesPerLane = 4
)

// SetupWithManager adds a driver for every cluster that the registry engages, now and later. ctx
// ends the jobs that run outside the workers.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	r.fetches = subscription.NewPool[jobKey, prepared](ctx, subscription.Options[jobKey]{
		Width: fetchesPerLane, Wake: r.wake, Backoff: reconcile.NewKernel(minBackoff, maxBackoff).Backoff,
	})
	if err := r.watchHub(ctx, mgr); err != nil {
		return err
	}
	r.Renders = cmp.Or(r.Renders, render.NewSlots(nil))
	r.memo = release.NewMemo()
	r.Clusters.OnEngage(r.engage)
	r.Clusters.Subscribe(func(key types.NamespacedName, reachable bool) {
		if d := r.drivers.Get(key); d != nil && reachable {
			d.wakeAll(ctx)
		}
	})
	return nil
}

// watchHub enqueues the installations of a definition that changes, of a cluster whose labels or
// version change, and of definitions whose source credentials change.
func (r *Reconciler) watchHub(ctx context.Context, mgr ctrl.Manager) error {
	_, _, err := watch.Handle(ctx, mgr.GetCache(), &v1alpha1.ApplicationDefinition{}, watch.Changes(differs, func(o client.Object) {
		for _, d := range r.drivers.All() {
			d.wakeUsing(ctx, o.GetName())
		}
	}))
	if err != nil {
		return err
	}
	_, _, err = watch.Handle(ctx, mgr.GetCache(), &v1alpha1.KubernetesCluster{}, watch.Changes(factsDiffer, func(o client.Object) {
		if d := r.drivers.Get(client.ObjectKeyFromObject(o)); d != nil {
			d.wakeAll(ctx)
		}
	}))
	if err != nil {
		return err
	}
	_, _, err = watch.Handle(ctx, mgr.GetCache(), content.Metadata(content.Secret), watch.Changes(always, func(o client.Object) {
		r.wakeUsers(ctx, client.ObjectKeyFromObject(o))
	}))
	return err
}

// wakeUsers enqueues the installations of every definition that names a Secret, in the clusters that get it from
// there.
func (r *Reconciler) wakeUsers(ctx context.Context, secret types.NamespacedName) {
	drivers := slices.DeleteFunc(r.drivers.All(), func(d *driver) bool { return d.credentialsNamespace() != secret.Namespace })
	if len(drivers) == 0 {
		return
	}
	found := &v1alpha1.ApplicationDefinitionList{}
	if err := r.Hub.List(ctx, found); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list definitions")
		return
	}
	for i := range found.Items {
		if !slices.Contains(found.Items[i].GetSecrets(), secret.Name) {
			continue
		}
		for _, d := range drivers {
			d.wakeUsing(ctx, found.Items[i].Name)
		}
	}
}

// wake is called when a fetch has ended. No driver will ask for the result if the cluster was removed
// meanwhile.
func (r *Reconciler) wake(k jobKey) {
	d := r.drivers.Get(k.cluster)
	if d == nil {
		r.fetches.Drop(k)
		return
	}
	d.waker.Wake(ctrl.Request{NamespacedName: k.name})
}

// differs reports whether a change of a definition matters to those who use it. Its status, which
// says who they are, does not.
func differs(was, is client.Object) bool {
	return was.GetGeneration() != is.GetGeneration() || !maps.Equal(was.GetAnnotations(), is.GetAnnotations()) ||
		was.GetDeletionTimestamp().IsZero() != is.GetDeletionTimestamp().IsZero()
}

// factsDiffer reports whether a change of a cluster matters to what is installed in it: to whether
// a definition is offered to it, or was, or to the values.
func factsDiffer(was, is client.Object) bool {
	before, after := was.(*v1alpha1.KubernetesCluster), is.(*v1alpha1.KubernetesCluster)
	return !maps.Equal(before.Labels, after.Labels) || before.Status.Version != after.Status.Version || forgets(before, after)
}

// always reports that every change matters.
func always(was, is client.Object) bool { return was.GetResourceVersion() != is.GetResourceVersion() }
