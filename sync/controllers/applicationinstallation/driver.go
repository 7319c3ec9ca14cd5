package applicationinstallation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/reconcile"
)

// engagedForGood is longer than any cluster stays lost.
const engagedForGood = 365 * 24 * time.Hour

// engage starts the driver of a cluster, which ends with ctx when the cluster is disengaged. The
// hub itself has a driver if a KubernetesCluster without a kubeconfig stands for it. A seed has none: it
// drives the installations in it itself.
func (r *Reconciler) engage(ctx context.Context, c *cluster.Cluster) error {
	if seed, err := c.IsSeed(ctx, r.Hub); err != nil || seed {
		return err
	}
	d, err := r.newDriver(ctx, c)
	if err != nil {
		return err
	}
	controller, err := controller.NewTypedUnmanaged("applicationinstallation", controller.TypedOptions[ctrl.Request]{
		Reconciler:              reconcile.Quiet(d),
		MaxConcurrentReconciles: cmp.Or(r.Workers, defaultWorkers),
		RateLimiter:             reconcile.NewLimiter(),
		SkipNameValidation:      ptr.To(true),
		// A cluster that is lost right now syncs when it is back, however long that takes.
		CacheSyncTimeout: engagedForGood,
		LogConstructor: func(req *ctrl.Request) logr.Logger {
			log := ctrl.Log.WithName("applicationinstallation").WithValues("cluster", c.Name())
			if req != nil {
				log = log.WithValues("namespace", req.Namespace, "name", req.Name)
			}
			return log
		},
	})
	if err != nil {
		return fmt.Errorf("make controller: %w", err)
	}
	for _, watch := range d.sources(ctx) {
		if err := controller.Watch(watch); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
	}
	r.begin(ctx, d)
	go func() {
		if err := controller.Start(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "controller of installations ended", "cluster", c.Name())
		}
		r.end(c)
	}()
	return nil
}

// begin makes a driver that of its cluster.
func (r *Reconciler) begin(ctx context.Context, d *driver) {
	r.changing.Lock()
	defer r.changing.Unlock()
	forgetCluster(d.cluster) // what was deleted while it had no driver is not in the metrics any more
	r.drivers.Put(ctx, d.cluster.Name(), d)
}

// end deletes the series of a cluster that has no driver any more. The last pass has ended.
func (r *Reconciler) end(c *cluster.Cluster) {
	r.changing.Lock()
	defer r.changing.Unlock()
	if r.drivers.Get(c.Name()) == nil {
		forgetCluster(c)
	}
}

func (r *Reconciler) newDriver(ctx context.Context, c *cluster.Cluster) (*driver, error) {
	clientset, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return nil, fmt.Errorf("make client for events: %w", err)
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clientset.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return nil, fmt.Errorf("record events: %w", err)
	}
	context.AfterFunc(ctx, broadcaster.Shutdown)
	d := &driver{
		Reconciler: r,
		cluster:    c,
		client:     c.Client(),
		recorder:   broadcaster.NewRecorder(c.Client().Scheme(), "waybill-sync"),
		values:     content.NewReader(ctx, c.Cache(), c.Client()),
		kernel:     reconcile.NewKernel(minBackoff, maxBackoff),
		waker:      &reconcile.Waker[ctrl.Request]{},
		told:       reconcile.NewBell[types.NamespacedName](),
		waits:      newWaits(),

		inventories: &inventory.Store{},
	}
	d.snapshots = &metadataWatch{ctx: ctx, cluster: c, kind: v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationSnapshotKind), changed: func(o client.Object) {
		for _, name := range d.waits.of(awaited{snapshot: client.ObjectKeyFromObject(o)}) {
			d.waker.Wake(ctrl.Request{NamespacedName: name})
		}
	}}
	d.holders = newHolders(ctx, d)
	d.applier = apply.New(ctx, c, apply.Options{Notify: d.notify})
	d.acts = reconcile.NewJobs[jobKey, acted](ctx, cmp.Or(r.Actions, defaultActions), func(k jobKey) {
		d.waker.Wake(ctrl.Request{NamespacedName: k.name})
	}, notInstalled).DrainedBy(r.Drain).TakingTurns(namespaceOf).Settling(func(ctx context.Context, got acted) {
		if got.settle != nil {
			got.settle(ctx)
		}
	})
	d.watching = map[content.Kind]*metadataWatch{
		content.Secret:    d.watchNamed(ctx, content.Secret),
		content.ConfigMap: d.watchNamed(ctx, content.ConfigMap),
	}
	d.methods = map[v1alpha1.Method]method{
		v1alpha1.MethodHelm:      newHelmMethod(d),
		v1alpha1.MethodKustomize: kustomizeMethod{d},
	}
	return d, nil
}

// namespaceOf is for whom an action is: the slow charts of a namespace do not keep others waiting.
func namespaceOf(k jobKey) string { return k.name.Namespace }

// notify enqueues the installation whose object was changed by others, or whose health changed.
func (d *driver) notify(owner apply.Owner) {
	key := owner.ObjectKey()
	d.told.Ring(key)
	d.waker.Wake(ctrl.Request{NamespacedName: key})
}

// sources returns what the driver's controller watches in its cluster until ctx ends.
func (d *driver) sources(ctx context.Context) []source.Source {
	installations := source.Kind[client.Object](leasedCache{d.cluster.Cache(), ctx}, &v1alpha1.ApplicationInstallation{},
		&handler.EnqueueRequestForObject{}, predicate.Or(reconcile.Changed(), heldChanged()))
	dependents := source.Kind[client.Object](leasedCache{d.cluster.Cache(), ctx}, &v1alpha1.ApplicationInstallation{},
		handler.EnqueueRequestsFromMapFunc(d.waiting))
	return []source.Source{installations, dependents, d.waker.Source()}
}

// wakeAll enqueues every installation of the cluster.
func (d *driver) wakeAll(ctx context.Context) {
	d.wakeIf(ctx, func(*v1alpha1.ApplicationInstallation) bool { return true })
}

// wakeUsing enqueues the installations of a definition.
func (d *driver) wakeUsing(ctx context.Context, definition string) {
	d.wakeIf(ctx, func(inst *v1alpha1.ApplicationInstallation) bool { return inst.Spec.ApplicationRef.Name == definition })
}

// watchNamed watches a kind that installations take values from. Once all of them are known, those that take
// values from any are enqueued: until then they have read them without the watch.
func (d *driver) watchNamed(ctx context.Context, kind content.Kind) *metadataWatch {
	return &metadataWatch{
		ctx: ctx, cluster: d.cluster, kind: content.Metadata(kind).GroupVersionKind(),
		changed: func(o client.Object) { d.wakeNaming(ctx, kind, client.ObjectKeyFromObject(o)) },
		filled:  func() { d.wakeNaming(ctx, kind, types.NamespacedName{}) },
	}
}

// wakeNaming enqueues the installations whose values come from the given Secret or ConfigMap; without
// a name, from any of that kind.
func (d *driver) wakeNaming(ctx context.Context, kind content.Kind, name types.NamespacedName) {
	d.wakeIf(ctx, func(inst *v1alpha1.ApplicationInstallation) bool {
		return slices.ContainsFunc(inst.Spec.ValuesFrom, func(from v1alpha1.ValuesReference) bool {
			return from.Kind == string(kind) && (name.Name == "" || from.Name == name.Name)
		})
	}, client.InNamespace(name.Namespace))
}

// wakeIf enqueues the wanted installations. It never waits for the cluster: while the cluster's
// installations are not known, it enqueues none, because the watch that finds them enqueues them all.
func (d *driver) wakeIf(ctx context.Context, wanted func(*v1alpha1.ApplicationInstallation) bool, opts ...client.ListOption) {
	log := ctrl.LoggerFrom(ctx).WithValues("cluster", d.cluster.Name())
	informer, err := d.cluster.Cache().GetInformer(ctx, &v1alpha1.ApplicationInstallation{}, cache.BlockUntilSynced(false))
	if err != nil {
		log.Error(err, "watch installations")
		return
	}
	if !informer.HasSynced() {
		return
	}
	found := &v1alpha1.ApplicationInstallationList{}
	if err := d.client.List(ctx, found, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		log.Error(err, "list installations")
		return
	}
	for i := range found.Items {
		if wanted(&found.Items[i]) {
			d.waker.Wake(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&found.Items[i])})
		}
	}
}
