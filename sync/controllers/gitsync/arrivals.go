package gitsync

import (
	"context"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
)

// arrivals enqueues GitSyncs when an ApplicationDefinition arrives, or changes, in a cluster whose
// admission has refused an ApplicationInstallation of theirs: it may be let in now. It watches the
// definitions that admission reads, no matter which client writes them, and only metadata, in
// clusters in which something was refused.
type arrivals struct {
	wake func(types.NamespacedName)

	mu        sync.Mutex
	byCluster map[*cluster.Cluster]*arrival
}

// arrival is what is known of one cluster.
type arrival struct {
	// count is how many definitions have arrived or changed.
	count   int
	waiting map[types.NamespacedName]bool
}

func newArrivals(wake func(types.NamespacedName)) *arrivals {
	return &arrivals{wake: wake, byCluster: map[*cluster.Cluster]*arrival{}}
}

// count returns how many definitions have arrived or changed in a cluster while it was watched.
func (a *arrivals) count(c *cluster.Cluster) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found := a.byCluster[c]; found != nil {
		return found.count
	}
	return 0
}

// await makes arrivals in a cluster enqueue a GitSync, until leave. c is not an impersonated view.
// If it is the first to wait in the cluster, the definitions that are there count as arrivals, too:
// they may have come after the refusal.
func (a *arrivals) await(c *cluster.Cluster, name types.NamespacedName) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.byCluster[c]
	if found == nil {
		found = &arrival{waiting: map[types.NamespacedName]bool{}}
		if err := a.watch(c, found); err != nil {
			return err
		}
		a.byCluster[c] = found
	}
	found.waiting[name] = true
	return nil
}

// leave ends await.
func (a *arrivals) leave(c *cluster.Cluster, name types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found := a.byCluster[c]; found != nil {
		delete(found.waiting, name)
	}
}

// watch counts arrivals until the cluster is disengaged. The caller holds the lock.
func (a *arrivals) watch(c *cluster.Cluster, into *arrival) error {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationDefinitionKind))
	_, _, err := watch.Handle(c.Context(), c.Cache(), definition, toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { a.arrived(into) },
		UpdateFunc: func(was, is any) {
			if was.(metav1.Object).GetGeneration() != is.(metav1.Object).GetGeneration() {
				a.arrived(into)
			}
		},
	})
	if err != nil {
		return err
	}
	context.AfterFunc(c.Context(), func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.byCluster, c)
	})
	return nil
}

func (a *arrivals) arrived(in *arrival) {
	a.mu.Lock()
	defer a.mu.Unlock()
	in.count++
	for name := range in.waiting {
		a.wake(name)
	}
}

// retryRefused makes failed deliveries due if a definition has arrived in a cluster since one began
// in which an installation was refused. The back-off is reset: admission may know of the definition
// a moment later than we do.
func (r *Reconciler) retryRefused(_ context.Context, s *scope) error {
	for _, t := range s.session.targets {
		if !t.state.Busy() && t.refused() && r.arrivals.count(t.base) != t.arrivedBefore {
			t.delivery.Retry()
		}
	}
	return nil
}

// awaitArrivals has the GitSync enqueued if a definition arrives in a cluster in which an
// installation was refused. Without the right to watch, the back-off is all there is.
func (r *Reconciler) awaitArrivals(ctx context.Context, s *scope) {
	name := s.session.key.NamespacedName
	for _, t := range s.targets() {
		switch {
		case t.base == nil:
		case !t.refused():
			r.arrivals.leave(t.base, name)
		default:
			if err := r.arrivals.await(t.base, name); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "await definitions", "cluster", t.name)
			}
			if r.arrivals.count(t.base) != t.arrivedBefore {
				r.waker.Wake(ctrl.Request{NamespacedName: name})
			}
		}
	}
}

// leaveArrivals ends the waiting for definitions in a cluster.
func (r *Reconciler) leaveArrivals(s *scope, t *target) {
	if t.base != nil {
		r.arrivals.leave(t.base, s.session.key.NamespacedName)
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
