package provide

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/cluster/content"
	"waybill.dev/waybill/sync/cluster/watch"
)

// Provider provides for all engaged clusters. In a user cluster it has the rights of the cluster's
// kubeconfig. All fields are required.
type Provider struct {
	// Hub reads KubernetesClusters and definitions from a cache.
	Hub client.Client
	// ConfigMaps reads those of the hub.
	ConfigMaps *content.Reader
	Clusters   *cluster.Registry
	// SystemNamespace holds the installations of definitions with default or enforced, in each cluster.
	SystemNamespace string

	// Usable returns why nothing can be created in a cluster yet; nil if it can.
	Usable func(types.NamespacedName) error
	// Wake is called with the name of a KubernetesCluster when its report has changed.
	Wake func(types.NamespacedName)
	// Backoff is the time after that many failures in a row.
	Backoff func(failures int) time.Duration

	clusters   cluster.Engaged[types.NamespacedName, *provided]
	configMaps sync.Once
	hub        cache.Cache
	ctx        context.Context // of the watches on the hub
}

// Setup watches the hub, and provides for each cluster that is engaged from now on.
func (p *Provider) Setup(ctx context.Context, mgr ctrl.Manager) error {
	p.ctx, p.hub = ctx, mgr.GetCache()
	if err := p.watch(ctx, &v1alpha1.KubernetesCluster{}, clusterDiffers, func(o client.Object) { p.Look(client.ObjectKeyFromObject(o)) }); err != nil {
		return fmt.Errorf("watch clusters: %w", err)
	}
	if err := p.watch(ctx, &v1alpha1.ApplicationDefinition{}, definitionDiffers, func(client.Object) { p.lookAll() }); err != nil {
		return fmt.Errorf("watch definitions: %w", err)
	}
	p.Clusters.OnEngage(p.engage)
	p.Clusters.Subscribe(func(key types.NamespacedName, reachable bool) {
		if c := p.clusters.Get(key); c != nil && reachable {
			c.Retry()
			c.look()
		}
	})
	return nil
}

// engage starts to provide for a cluster; that ends when the cluster is disengaged. A seed provides for its clusters
// itself.
func (p *Provider) engage(ctx context.Context, c *cluster.Cluster) error {
	kc := &v1alpha1.KubernetesCluster{}
	if err := p.Hub.Get(ctx, c.Name(), kc, client.UnsafeDisableDeepCopy); err != nil || kc.IsSeed() {
		return client.IgnoreNotFound(err)
	}
	made := newProvided(p, c)
	p.clusters.Put(ctx, c.Name(), made)
	go made.Run(ctx)
	return nil
}

// Look enqueues a cluster, if it is engaged.
func (p *Provider) Look(key types.NamespacedName) {
	if c := p.clusters.Get(key); c != nil {
		c.look()
	}
}

// Withdraw deletes what is enforced in a cluster that is to be removed.
func (p *Provider) Withdraw(key types.NamespacedName) {
	if c := p.clusters.Get(key); c != nil {
		c.withdraw()
	}
}

// Report returns what was found in a cluster; nil if it was not reconciled yet.
func (p *Provider) Report(key types.NamespacedName) *Report {
	if c := p.clusters.Get(key); c != nil {
		return c.last()
	}
	return nil
}

func (p *Provider) lookAll() {
	for _, c := range p.clusters.All() {
		c.look()
	}
}

// follow enqueues clusters when a ConfigMap of the hub changes, from the first one on that a
// KubernetesCluster names.
func (p *Provider) follow() {
	p.configMaps.Do(func() {
		err := p.watch(p.ctx, content.Metadata(content.ConfigMap), func(was, is client.Object) bool {
			return was.GetResourceVersion() != is.GetResourceVersion()
		}, p.lookNaming)
		if err != nil {
			ctrl.LoggerFrom(p.ctx).Error(err, "watch ConfigMaps")
		}
	})
}

// lookNaming enqueues the clusters whose KubernetesCluster names a ConfigMap.
func (p *Provider) lookNaming(configMap client.Object) {
	list := &v1alpha1.KubernetesClusterList{}
	if err := p.Hub.List(p.ctx, list, client.InNamespace(configMap.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(p.ctx).Error(err, "list KubernetesClusters that name a ConfigMap")
		return
	}
	for i := range list.Items {
		if from := list.Items[i].Spec.InstallationsFrom; from != nil && from.Name == configMap.GetName() {
			p.Look(client.ObjectKeyFromObject(&list.Items[i]))
		}
	}
}

// watch calls f for each object of the hub that is created, deleted, or changed in a way that matters.
func (p *Provider) watch(ctx context.Context, obj client.Object, differs func(was, is client.Object) bool, f func(client.Object)) error {
	_, _, err := watch.Handle(ctx, p.hub, obj, watch.Changes(differs, f))
	return err
}

// clusterDiffers reports whether a change of a KubernetesCluster matters to what it is provided with.
func clusterDiffers(was, is client.Object) bool {
	before, after := was.(*v1alpha1.KubernetesCluster), is.(*v1alpha1.KubernetesCluster)
	return before.Generation != after.Generation || !maps.Equal(before.Labels, after.Labels) ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		before.Annotations[v1alpha1.InitialInstallationsAnnotation] != after.Annotations[v1alpha1.InitialInstallationsAnnotation] ||
		agentPending(before) != agentPending(after) ||
		!apiequality.Semantic.DeepEqual(before.Status.InstallationsTaken, after.Status.InstallationsTaken) ||
		!apiequality.Semantic.DeepEqual(before.Status.Provided, after.Status.Provided)
}

// definitionDiffers reports whether a change of a definition matters to where it is to be installed.
func definitionDiffers(was, is client.Object) bool {
	return was.GetGeneration() != is.GetGeneration() || was.GetDeletionTimestamp().IsZero() != is.GetDeletionTimestamp().IsZero() ||
		metav1.HasAnnotation(metav1.ObjectMeta{Annotations: was.GetAnnotations()}, v1alpha1.CopyOfAnnotation) !=
			metav1.HasAnnotation(metav1.ObjectMeta{Annotations: is.GetAnnotations()}, v1alpha1.CopyOfAnnotation)
}
