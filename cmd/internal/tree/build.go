package tree

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
)

// builder builds one tree. It reads clusters concurrently, and each object once.
type builder struct {
	*warnings

	depth   int // levels below the root; 0 for all
	home    *clusterReader
	readers []*clusterReader // of the clusters, the home cluster and those of seeds among them
	leftOut map[client.ObjectKey]bool

	mu      sync.Mutex
	visited map[visit]bool
	claimed map[visit]bool
	// holds says which objects are held.
	holds map[visit]string
}

// visit is an object that has been descended into, so that a second path to it ends there, or that
// is shown as a component of an Application, and therefore not beside it.
type visit struct {
	cluster *clusterReader
	id      manifest.ID
}

// leadsToOthers are the kinds whose trees may lead to all user clusters. The tree of a
// KubernetesApplication leads to only one, which is looked up when needed.
var leadsToOthers = map[string]bool{
	v1alpha1.GitSyncKind: true, v1alpha1.ApplicationDefinitionKind: true, v1alpha1.KubernetesClusterKind: true,
}

// newBuilder returns a builder for a tree of a root. It looks up clusters other than the home cluster only if the tree may lead
// there, and they are selected.
func newBuilder(ctx context.Context, home *fleet.Cluster, root *unstructured.Unstructured, depth int, only fleet.Selection) *builder {
	b := &builder{
		warnings: newWarnings(), depth: depth, leftOut: map[client.ObjectKey]bool{},
		visited: map[visit]bool{}, claimed: map[visit]bool{}, holds: map[visit]string{},
	}
	clusters := []*fleet.Cluster{home}
	if leadsToOthers[root.GetKind()] {
		keep := only.Keep
		if root.GetKind() == v1alpha1.KubernetesClusterKind { // its tree is that of one cluster
			keep = func(k *v1alpha1.KubernetesCluster) bool {
				return client.ObjectKeyFromObject(k) == client.ObjectKeyFromObject(root)
			}
		}
		only.Keep = func(k *v1alpha1.KubernetesCluster) bool {
			wanted := keep == nil || keep(k)
			b.leftOut[client.ObjectKeyFromObject(k)] = !wanted
			return wanted
		}
		all, err := home.UserClustersIf(ctx, only)
		if err == nil {
			clusters = all
		} else { // a user cluster does not serve them, or we may not list them
			b.note("other clusters are left out: " + err.Error())
		}
	}
	for _, cluster := range clusters {
		b.readers = append(b.readers, newClusterReader(cluster, b.warnings))
	}
	b.home = b.readers[0]
	return b
}

// build returns the tree below an object of the home cluster.
func (b *builder) build(ctx context.Context, root *unstructured.Unstructured) (*treeNode, error) {
	node := describe(root, b.home)
	children, err := b.descend(ctx, b.home, root, 1)
	node.Children = children
	if err == nil {
		b.complete(ctx, node, nil)
		b.markHeld(node)
	}
	return node, err
}

// shows reports whether the tree has a level.
func (b *builder) shows(level int) bool { return b.depth == 0 || level <= b.depth }

// descend returns the nodes below an object at a level; none below the last level.
func (b *builder) descend(ctx context.Context, at *clusterReader, object *unstructured.Unstructured, level int) ([]*treeNode, error) {
	if !b.shows(level) || !b.first(at, object) {
		return nil, nil
	}
	if !isOurs(object) {
		return b.owned(ctx, pending{at, object, level}), nil
	}
	switch object.GetKind() {
	case v1alpha1.GitSyncKind:
		return below(ctx, b.ofGitSync, at, object, level)
	case v1alpha1.ApplicationDefinitionKind:
		return below(ctx, b.ofDefinition, at, object, level)
	case v1alpha1.KubernetesClusterKind:
		if level > 1 {
			// Objects in the cluster are not delivered by what delivers its KubernetesCluster.
			return nil, nil
		}
		return below(ctx, b.ofCluster, at, object, level)
	case v1alpha1.KubernetesApplicationKind:
		return below(ctx, b.ofKubernetesApplication, at, object, level)
	case v1alpha1.KubernetesApplicationResourceKind:
		return below(ctx, b.ofResource, at, object, level)
	case v1alpha1.ApplicationInstallationKind:
		return below(ctx, b.ofInstallation, at, object, level)
	case v1alpha1.ApplicationKind:
		return below(ctx, b.ofApplication, at, object, level)
	case v1alpha1.StatefulApplicationKind:
		return below(ctx, b.ofStateful, at, object, level)
	}
	return b.owned(ctx, pending{at, object, level}), nil
}

func (b *builder) first(at *clusterReader, object *unstructured.Unstructured) bool {
	v := visit{cluster: at, id: idOf(object).Key()}
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := b.visited[v]
	b.visited[v] = true
	return !seen
}

// seen reports whether an object has been descended into.
func (b *builder) seen(at *clusterReader, id manifest.ID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.visited[visit{cluster: at, id: id.Key()}]
}

// claim records that an object is shown as a component.
func (b *builder) claim(at *clusterReader, id manifest.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.claimed[visit{cluster: at, id: id.Key()}] = true
}

// unclaimed returns the objects that are not shown as components.
func (b *builder) unclaimed(at *clusterReader, ids []manifest.ID) []manifest.ID {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(ids), func(id manifest.ID) bool { return b.claimed[visit{cluster: at, id: id.Key()}] })
}

// of returns the nodes below an object of a type, at a level.
type of[T any] func(ctx context.Context, at *clusterReader, object *T, level int) ([]*treeNode, error)

// below converts an object to its type and calls next.
func below[T any](ctx context.Context, next of[T], at *clusterReader, object *unstructured.Unstructured, level int) ([]*treeNode, error) {
	typed := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return next(ctx, at, typed, level)
}

// ofGitSync returns what a GitSync delivers, by cluster if it delivers to others.
func (b *builder) ofGitSync(ctx context.Context, at *clusterReader, gs *v1alpha1.GitSync, level int) ([]*treeNode, error) {
	ids, err := b.inventory(ctx, at, gs, gs.Status.Inventory)
	if err != nil {
		return nil, err
	}
	if len(gs.Status.Clusters) == 0 {
		b.hold(at, gs.Status.Held)
		return b.objects(ctx, at, ids, level), nil
	}
	return b.each(len(gs.Status.Clusters), func(i int) (*treeNode, error) {
		status := gs.Status.Clusters[i]
		node := &treeNode{Group: v1alpha1.Group, Kind: v1alpha1.KubernetesClusterKind, Namespace: gs.Namespace, Name: status.Name, Cluster: at.name(), Version: status.Revision}
		node.Health, node.Message = health.Current, status.Message
		if !status.Ready {
			node.Health = health.InProgress
		}
		target := at // for an entry without a name
		if status.Name != "" {
			target = b.reader(client.ObjectKey{Namespace: gs.Namespace, Name: status.Name})
		}
		switch {
		case target == nil && b.leftOut[client.ObjectKey{Namespace: gs.Namespace, Name: status.Name}]:
			node.Message = joined(node.Message, "what it has is not read here")
			return node, nil
		case target == nil:
			node.Health, node.Message = health.NotFound, "the hub has no such KubernetesCluster"
			return node, nil
		}
		if err := target.reach(ctx); err != nil {
			node.Health, node.Message = health.Unknown, err.Error()
			return node, nil
		}
		b.hold(target, slices.DeleteFunc(slices.Clone(gs.Status.Held), func(h v1alpha1.Hold) bool { return h.Cluster != status.Name }))
		if b.shows(level + 1) {
			node.Children = b.objects(ctx, target, ids, level+1)
		}
		return node, nil
	})
}

// inventory reads what one of our objects has delivered, from its status or its Secrets.
func (b *builder) inventory(ctx context.Context, at *clusterReader, owner client.Object, in *v1alpha1.Inventory) ([]manifest.ID, error) {
	if in == nil {
		return nil, nil
	}
	c, err := at.client()
	if err != nil {
		return nil, err
	}
	return new(inventory.Store).Load(ctx, c, owner, *in)
}

// objects returns the current objects of an inventory, and what is below them. An object that is a
// component of an Application among them is shown only there.
func (b *builder) objects(ctx context.Context, at *clusterReader, ids []manifest.ID, level int) []*treeNode {
	var apps, others []manifest.ID
	for _, id := range ids {
		if id.Group == v1alpha1.Group && id.Kind == v1alpha1.ApplicationKind {
			apps = append(apps, id)
		} else {
			others = append(others, id)
		}
	}
	nodes := b.readAll(ctx, at, apps, level)
	nodes = append(nodes, b.readAll(ctx, at, b.unclaimed(at, others), level)...)
	sortNodes(nodes)
	return nodes
}

func (b *builder) readAll(ctx context.Context, at *clusterReader, ids []manifest.ID, level int) []*treeNode {
	nodes, _ := b.each(len(ids), func(i int) (*treeNode, error) {
		object, node := at.read(ctx, ids[i])
		if object == nil {
			return node, nil
		}
		if err := b.under(ctx, node, pending{at, object, level + 1}); err != nil {
			b.note(err.Error())
		}
		return node, nil
	})
	return nodes
}

// each builds siblings concurrently and sorts them; nil nodes are left out.
func (b *builder) each(n int, build func(int) (*treeNode, error)) ([]*treeNode, error) {
	nodes := make([]*treeNode, n)
	var group errgroup.Group
	for i := range n {
		group.Go(func() (err error) {
			nodes[i], err = build(i)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	nodes = slices.DeleteFunc(nodes, func(node *treeNode) bool { return node == nil })
	sortNodes(nodes)
	return nodes, nil
}

// reader returns the cluster of that name; nil if the hub has none. Those of seeds may have the same names.
func (b *builder) reader(key client.ObjectKey) *clusterReader {
	for _, s := range b.readers {
		if s.cluster.Key == key && s.cluster.Seed() == nil {
			return s
		}
	}
	return nil
}

// behind returns the clusters of a seed.
func (b *builder) behind(seed *clusterReader) []*clusterReader {
	var found []*clusterReader
	for _, s := range b.readers {
		if s.cluster.Seed() != nil && s.cluster.Seed() == seed.cluster {
			found = append(found, s)
		}
	}
	return found
}

func idOf(object *unstructured.Unstructured) manifest.ID {
	return manifest.Object{Unstructured: object}.ID()
}

// describe returns the node of a live object.
func describe(object *unstructured.Unstructured, at *clusterReader) *treeNode {
	node := newNode(idOf(object), at)
	node.read(object)
	node.Health, node.Message = health.Of(object)
	if !isOurs(object) {
		if node.Health == health.Current {
			node.Message = ""
		}
		return node
	}
	node.Version = versionOf(object)
	if object.GetKind() == v1alpha1.ApplicationKind {
		return node // its health is that of its components, if a controller reports on them
	}
	_, copied := object.GetAnnotations()[v1alpha1.CopyOfAnnotation]
	switch ready := readyMessage(object); {
	case ready != "":
		node.Message = ready
	case copied:
		node.Health, node.Message = health.Current, "copy of the hub's"
	default:
		node.Health, node.Message = health.InProgress, "not reconciled yet"
	}
	return node
}

func readyMessage(object *unstructured.Unstructured) string {
	status := v1alpha1.ReconcileStatus{}
	raw, _, _ := unstructured.NestedMap(object.Object, "status")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &status); err != nil {
		return ""
	}
	for _, c := range status.Conditions {
		if c.Type == v1alpha1.ReadyCondition && c.Status != metav1.ConditionTrue {
			return c.Reason + ": " + c.Message
		}
		if c.Type == v1alpha1.ReadyCondition {
			return c.Message
		}
	}
	return ""
}

// versionOf returns the newest revision or version of one of our objects.
func versionOf(object *unstructured.Unstructured) string {
	for _, path := range [][]string{
		{"status", "revision"}, {"status", "application", "version"}, {"spec", "applicationRef", "version"}, {"spec", "version"}, {"status", "version"},
	} {
		if version, _, _ := unstructured.NestedString(object.Object, path...); version != "" {
			return version
		}
	}
	return ""
}
