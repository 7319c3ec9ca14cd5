package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
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
	of := func(kind string, object client.Object, list func() client.ObjectList) *follow {
		f := newFollow(c, object, list, func() { i.feed.tell(kind) })
		f.fallback = fallback
		return f
	}
	i.clusters = of(v1alpha1.KubernetesClusterKind, &v1alpha1.KubernetesCluster{}, func() client.ObjectList { return &v1alpha1.KubernetesClusterList{} })
	i.definitions = of(v1alpha1.ApplicationDefinitionKind, &v1alpha1.ApplicationDefinition{}, func() client.ObjectList { return &v1alpha1.ApplicationDefinitionList{} })
	i.definitions.fallback = "" // they have no namespace
	i.syncs = of(v1alpha1.GitSyncKind, &v1alpha1.GitSync{}, func() client.ObjectList { return &v1alpha1.GitSyncList{} })
	i.placed = of(v1alpha1.KubernetesApplicationKind, &v1alpha1.KubernetesApplication{}, func() client.ObjectList { return &v1alpha1.KubernetesApplicationList{} })
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

// all returns the watches by kind, in the order in which people look at them.
func (i *inventory) all() []named {
	return []named{
		{v1alpha1.KubernetesClusterKind, i.clusters}, {v1alpha1.ApplicationDefinitionKind, i.definitions},
		{v1alpha1.GitSyncKind, i.syncs}, {v1alpha1.KubernetesApplicationKind, i.placed},
	}
}

type named struct {
	kind string
	*follow
}

// run watches until ctx ends.
func (i *inventory) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, f := range i.all() {
		group.Go(func() error { return f.run(ctx) })
	}
	return group.Wait()
}

// sorted returns the objects of a watch by namespace and name.
func sorted[T client.Object](f *follow) []T {
	all := objects[T](f)
	slices.SortFunc(all, func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return all
}

// troubles says, of the kinds that a page is made of, which are not known as they are now.
func (i *inventory) troubles(kinds []string) []string {
	var said []string
	for _, f := range i.all() {
		if !slices.Contains(kinds, f.kind) {
			continue
		}
		switch s := f.stands(); {
		case s.State == connecting:
			said = append(said, f.kind+"s are being read.")
		case s.State == lost:
			said = append(said, fmt.Sprintf("The hub does not answer: %ss are shown as they were at %s. %s", f.kind, s.Since.Format("15:04:05"), i.hub.Explain(errors.New(s.Message))))
		case s.State == forbidden:
			said = append(said, fmt.Sprintf("You may not list and watch %ss: %s", f.kind, s.Message))
		case s.Namespace != "":
			said = append(said, fmt.Sprintf("You may not list %ss in all namespaces: those of namespace %s are shown.", f.kind, s.Namespace))
		}
	}
	return said
}
