package dashboard

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
)

// inventory has the objects of the hub that pages are made of.
type inventory struct {
	hub  *fleet.Cluster
	feed *feed

	clusters, definitions, syncs, placed *follow
}

// newInventory returns the inventory of a hub. fallback is the namespace to read if the user may not read all.
func newInventory(hub *fleet.Cluster, fallback string) (*inventory, error) {
	c, err := watcher(hub)
	if err != nil {
		return nil, err
	}
	i := &inventory{hub: hub, feed: newFeed()}
	of := func(kind, resource string, object client.Object, list func() client.ObjectList) *follow {
		f := newFollow(c, object, list, func(namespace, name string) { i.feed.tell(kind, namespace, name) })
		f.kind, f.resource, f.fallback = kind, resource, fallback
		return f
	}
	i.clusters = of(v1alpha1.KubernetesClusterKind, "kubernetesclusters", &v1alpha1.KubernetesCluster{}, func() client.ObjectList { return &v1alpha1.KubernetesClusterList{} })
	i.definitions = of(v1alpha1.ApplicationDefinitionKind, "applicationdefinitions", &v1alpha1.ApplicationDefinition{}, func() client.ObjectList { return &v1alpha1.ApplicationDefinitionList{} })
	i.definitions.fallback = "" // they have no namespace
	i.syncs = of(v1alpha1.GitSyncKind, "gitsyncs", &v1alpha1.GitSync{}, func() client.ObjectList { return &v1alpha1.GitSyncList{} })
	i.placed = of(v1alpha1.KubernetesApplicationKind, "kubernetesapplications", &v1alpha1.KubernetesApplication{}, func() client.ObjectList { return &v1alpha1.KubernetesApplicationList{} })
	return i, nil
}

// watcher returns a client of a cluster whose requests may last.
func watcher(cluster *fleet.Cluster) (client.WithWatch, error) {
	config, httpClient, err := cluster.Streaming()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	c, err := client.NewWithWatch(config, client.Options{HTTPClient: httpClient, Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", cluster.Name(), cluster.Explain(err))
	}
	return c, nil
}

// all returns the watches, in the order in which people look at them.
func (i *inventory) all() []*follow { return []*follow{i.clusters, i.definitions, i.syncs, i.placed} }

// run watches until ctx ends.
func (i *inventory) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, f := range i.all() {
		group.Go(func() error { return f.run(ctx) })
	}
	return group.Wait()
}

// troubles says, of the kinds that a page is made of, which are not shown, or not as they are now.
func (i *inventory) troubles(ctx context.Context, v *viewer, kinds []string) []string {
	var said []string
	for _, f := range i.all() {
		if slices.Contains(kinds, f.kind) {
			said = append(said, i.trouble(ctx, v, f)...)
		}
	}
	return said
}

func (i *inventory) trouble(ctx context.Context, v *viewer, f *follow) (said []string) {
	switch s := f.stands(); {
	case s.State == connecting:
		said = append(said, f.kind+"s are being read.")
	case s.State == lost:
		said = append(said, fmt.Sprintf("The hub does not answer: %ss are shown as they were at %s. %s", f.kind, s.Since.Format("15:04:05"), i.hub.Explain(s.Err)))
	case s.State == forbidden && v.own:
		said = append(said, fmt.Sprintf("You may not list and watch %ss: %s", f.kind, s.Message))
	case s.State == forbidden:
		said = append(said, fmt.Sprintf("The dashboard may not list and watch %ss: %s", f.kind, s.Message))
	case s.Namespace != "":
		said = append(said, fmt.Sprintf("You may not list %ss in all namespaces: those of namespace %s are shown.", f.kind, s.Namespace))
	}
	switch s := v.scope(ctx, f); {
	case s.all:
	case len(s.namespaces) == 0:
		said = append(said, fmt.Sprintf("No %ss are shown. %s", f.kind, s.why))
	default:
		said = append(said, fmt.Sprintf("You may not list %ss in all namespaces: those of the namespaces in which you may are shown.", f.kind))
	}
	return said
}

// kubernetesCluster returns the KubernetesCluster of that name, from memory; nil if it is not known, or not to the viewer.
func (i *inventory) kubernetesCluster(ctx context.Context, v *viewer, key types.NamespacedName) *v1alpha1.KubernetesCluster {
	found, _, _ := i.clusters.informer.GetStore().GetByKey(key.String()) // a key cannot be wrong
	k, _ := found.(*v1alpha1.KubernetesCluster)
	if k == nil || i.clusters.stands().State == forbidden || !v.sees(ctx, i.clusters, k.Namespace) {
		return nil
	}
	return k
}
