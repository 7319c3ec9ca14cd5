package gitsync

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/keyed"
	"waybill.dev/waybill/sync/manifest"
)

// arrivals enqueues GitSyncs when an ApplicationDefinition arrives, or changes, in a cluster whose
// admission has refused an ApplicationInstallation of theirs: it may be let in now. It watches the
// definitions that admission reads, no matter which client writes them, and only metadata, in
// clusters in which something was refused.
type arrivals struct {
	wake      func(types.NamespacedName)
	byCluster keyed.Map[*cluster.Cluster, arrival]
}

// arrival is what is known of one cluster.
type arrival struct {
	// count is how many definitions have arrived or changed.
	count int
	// waiting has the GitSyncs to enqueue; nil if the cluster is not watched.
	waiting map[types.NamespacedName]bool
}

func newArrivals(wake func(types.NamespacedName)) *arrivals { return &arrivals{wake: wake} }

// count returns how many definitions have arrived or changed in a cluster while it was watched.
func (a *arrivals) count(c *cluster.Cluster) int { return a.byCluster.Get(c).count }

// await makes arrivals in a cluster enqueue a GitSync, until leave. c is not an impersonated view.
// If it is the first to wait in the cluster, the definitions that are there count as arrivals, too:
// they may have come after the refusal.
func (a *arrivals) await(c *cluster.Cluster, name types.NamespacedName) error {
	_, err := a.byCluster.Make(c, func() (arrival, error) { return arrival{waiting: map[types.NamespacedName]bool{}}, a.watch(c) })
	if err != nil {
		return err
	}
	a.change(c, func(in *arrival) { in.waiting[name] = true })
	return nil
}

// leave ends await.
func (a *arrivals) leave(c *cluster.Cluster, name types.NamespacedName) {
	a.change(c, func(in *arrival) { delete(in.waiting, name) })
}

// watch counts arrivals until the cluster is disengaged.
func (a *arrivals) watch(c *cluster.Cluster) error {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationDefinitionKind))
	_, _, err := watch.Handle(c.Context(), c.Cache(), definition, toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { a.arrived(c) },
		UpdateFunc: func(was, is any) {
			if was.(metav1.Object).GetGeneration() != is.(metav1.Object).GetGeneration() {
				a.arrived(c)
			}
		},
	})
	if err == nil {
		context.AfterFunc(c.Context(), func() { a.byCluster.Drop(c) })
	}
	return err
}

func (a *arrivals) arrived(c *cluster.Cluster) {
	a.change(c, func(in *arrival) {
		in.count++
		for name := range in.waiting {
			a.wake(name)
		}
	})
}

// change changes what is known of a cluster that is watched.
func (a *arrivals) change(c *cluster.Cluster, f func(*arrival)) {
	a.byCluster.Change(c, func(in arrival) (arrival, bool) {
		if in.waiting == nil {
			return in, false
		}
		f(&in)
		return in, true
	})
}

// awaited is what a target knows of the definitions in its cluster.
type awaited struct {
	arrivals *arrivals
	// name is that of the GitSync to enqueue.
	name types.NamespacedName
	// cluster is the one as Waybill itself sees it; nil until it was first available.
	cluster *cluster.Cluster
	// before is how many definitions had arrived there at the start of the last delivery.
	before int
}

// in says which cluster it is about.
func (a *awaited) in(c *cluster.Cluster) {
	if a.cluster != c {
		a.leave()
		a.cluster = c
	}
}

// begin says that a delivery begins.
func (a *awaited) begin() { a.before = a.arrivals.count(a.cluster) }

// arrived reports whether a definition has arrived since the last delivery began.
func (a *awaited) arrived() bool { return a.arrivals.count(a.cluster) != a.before }

// await has the GitSync enqueued if a definition arrives, or has since the last delivery began.
func (a *awaited) await() error {
	err := a.arrivals.await(a.cluster, a.name)
	if a.arrived() {
		a.arrivals.wake(a.name)
	}
	return err
}

// leave ends await.
func (a *awaited) leave() {
	if a.cluster != nil {
		a.arrivals.leave(a.cluster, a.name)
	}
}

// retryRefused makes failed deliveries due if a definition has arrived in a cluster since one began
// in which an installation was refused. The back-off is reset: admission may know of the definition
// a moment later than we do.
func (r *Reconciler) retryRefused(_ context.Context, s *scope) error {
	for _, t := range s.session.targets {
		if !t.state.Busy() && t.refused() && t.definitions.arrived() {
			t.delivery.Retry()
		}
	}
	return nil
}

// awaitArrivals has the GitSync enqueued if a definition arrives in a cluster in which an
// installation was refused. Without the right to watch, the back-off is all there is.
func (s *scope) awaitArrivals(ctx context.Context) {
	for _, t := range s.targets() {
		if !t.refused() {
			t.definitions.leave()
		} else if err := t.definitions.await(); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "await definitions", "cluster", t.name)
		}
	}
}

// refused reports whether the last delivery left an installation out that admission may let in once
// its definition is there. To a cluster that cannot be delivered to, or is being left, that is of no
// importance: everything is delivered again when it is back.
func (t *target) refused() bool {
	return t.state.Usable() && !t.leaving && slices.ContainsFunc(t.state.Result.Problems, mayBeAdmitted)
}

func mayBeAdmitted(p manifest.Problem) bool {
	return p.Reason == apply.ReasonRefused && p.ID.Group == v1alpha1.Group && p.ID.Kind == v1alpha1.ApplicationInstallationKind
}
