package tree

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
)

// ofDefinition returns the clusters that a definition is installed in, with the installations below
// them. A copy in a user cluster leads to the installations in that cluster.
func (b *builder) ofDefinition(ctx context.Context, at *clusterReader, definition *v1alpha1.ApplicationDefinition, level int) ([]*treeNode, error) {
	readers := b.readers
	if !definition.InCatalog() || at != b.home {
		readers = []*clusterReader{at}
	}
	return b.each(len(readers), func(i int) (*treeNode, error) {
		node := readers[i].node()
		uses := func(inst *unstructured.Unstructured) bool {
			name, _, _ := unstructured.NestedString(inst.Object, "spec", "applicationRef", "name")
			return name == definition.Name
		}
		err := readers[i].reach(ctx)
		var installations []*treeNode
		if err == nil {
			installations, err = b.installations(ctx, readers[i], uses, level+1)
		}
		if err != nil {
			node.Health, node.Message = health.Unknown, err.Error()
			installations = b.lastSeen(ctx, readers[i], definition.Name)
		}
		if len(installations) == 0 && err == nil {
			return nil, nil
		}
		if b.shows(level + 1) {
			node.Children = installations
		}
		return node, nil
	})
}

// lastSeen returns the installations that a cluster had when it last answered. A seed had them in its
// clusters.
func (b *builder) lastSeen(ctx context.Context, at *clusterReader, definition string) []*treeNode {
	c, err := b.home.client()
	if err != nil {
		return nil
	}
	cluster := &v1alpha1.KubernetesCluster{}
	if err := c.Get(ctx, at.cluster.Key, cluster); err != nil {
		return nil
	}
	if at.cluster.Seed() != nil {
		return nil // the hub knows of its seed alone
	}
	nodes := lastUsed(at, cluster.Status.Usage, definition)
	for _, inst := range cluster.Status.Installations {
		if inst.Definition != definition {
			continue
		}
		nodes = append(nodes, &treeNode{
			Group: v1alpha1.Group, Kind: v1alpha1.ApplicationInstallationKind, Namespace: inst.Namespace, Name: inst.Name,
			Cluster: at.name(), Version: inst.Version, Health: health.Unknown, Message: fmt.Sprintf("last seen with Ready=%s", inst.Ready),
		})
	}
	return nodes
}

// lastUsed returns the installations in the clusters of a seed that used a definition when it last answered.
func lastUsed(at *clusterReader, usage []v1alpha1.DefinitionUsage, definition string) []*treeNode {
	var nodes []*treeNode
	for _, used := range usage {
		if used.Definition != definition {
			continue
		}
		for _, name := range used.Installations {
			parts := strings.Split(name, "/") // namespace and name of the cluster, and of the installation
			if len(parts) != 4 {
				continue
			}
			nodes = append(nodes, &treeNode{
				Group: v1alpha1.Group, Kind: v1alpha1.ApplicationInstallationKind, Namespace: parts[2], Name: parts[3],
				Cluster: at.name() + "/" + parts[1], Version: used.Version, Health: health.Unknown, Message: "last seen in cluster " + parts[1] + " of the seed",
			})
		}
	}
	return nodes
}

// ofCluster returns what runs in a user cluster: its installations, and the
// KubernetesApplications that are scheduled to it.
func (b *builder) ofCluster(ctx context.Context, _ *clusterReader, cluster *v1alpha1.KubernetesCluster, level int) ([]*treeNode, error) {
	at := b.reader(client.ObjectKeyFromObject(cluster))
	if at == nil {
		return nil, nil // deleted meanwhile
	}
	nodes, err := b.placed(ctx, cluster, level)
	if err != nil {
		b.note("KubernetesApplications are left out: " + err.Error())
	}
	all := func(*unstructured.Unstructured) bool { return true }
	installations, err := b.installations(ctx, at, all, level)
	if err != nil {
		b.note(fmt.Sprintf("cluster %s is left out: %s", at.name(), err))
	}
	users, err := b.ofSeed(ctx, at, level)
	return append(append(nodes, installations...), users...), err
}

// ofSeed returns the clusters of a seed, with what runs in each; none if it is no seed.
func (b *builder) ofSeed(ctx context.Context, seed *clusterReader, level int) ([]*treeNode, error) {
	users := b.behind(seed)
	all := func(*unstructured.Unstructured) bool { return true }
	return b.each(len(users), func(i int) (*treeNode, error) {
		node := users[i].node()
		installations, err := b.installations(ctx, users[i], all, level+1)
		if err != nil {
			node.Health, node.Message = health.Unknown, err.Error()
		}
		if b.shows(level + 1) {
			node.Children = installations
		}
		return node, nil
	})
}

// installations returns the installations of a cluster that keep accepts.
func (b *builder) installations(ctx context.Context, at *clusterReader, keep func(*unstructured.Unstructured) bool, level int) ([]*treeNode, error) {
	kind := v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationInstallationKind)
	found, err := at.list(ctx, kind)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(inst unstructured.Unstructured) bool { return !keep(&inst) })
	return b.each(len(found), func(i int) (*treeNode, error) {
		node := describe(&found[i], at)
		children, err := b.descend(ctx, at, &found[i], level+1)
		node.Children = children
		return node, err
	})
}

// ofInstallation returns the objects of an installation, and the Application that it created.
func (b *builder) ofInstallation(ctx context.Context, at *clusterReader, inst *v1alpha1.ApplicationInstallation, level int) ([]*treeNode, error) {
	b.holdInstallation(at, inst)
	ids, err := b.inventory(ctx, at, inst, inst.Status.Inventory)
	if err != nil {
		return nil, err
	}
	if app := inst.Status.Application; app != nil {
		id := applicationID(app.Namespace, inst.Name)
		// Its components are the objects beside it, so it is not descended into.
		b.mu.Lock()
		b.visited[visit{cluster: at, id: id.Key()}] = true
		b.mu.Unlock()
		if !slices.ContainsFunc(ids, func(other manifest.ID) bool { return other.Key() == id.Key() }) {
			ids = append(ids, id)
		}
	}
	return b.objects(ctx, at, ids, level), nil
}

func applicationID(namespace, name string) manifest.ID {
	return manifest.ID{Group: v1alpha1.Group, Version: v1alpha1.GroupVersion.Version, Kind: v1alpha1.ApplicationKind, Namespace: namespace, Name: name}
}
