package tree

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/json"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
)

// ofKubernetesApplication returns the resources of an application. Each leads to its object in the
// cluster that the application is scheduled to.
func (b *builder) ofKubernetesApplication(ctx context.Context, at *clusterReader, app *v1alpha1.KubernetesApplication, level int) ([]*treeNode, error) {
	kind := v1alpha1.GroupVersion.WithKind(v1alpha1.KubernetesApplicationResourceKind)
	found, err := at.list(ctx, kind, client.InNamespace(app.Namespace), client.MatchingLabels{v1alpha1.KubernetesApplicationLabel: app.Name})
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(kar unstructured.Unstructured) bool { return !metav1.IsControlledBy(&kar, app) })
	nodes, err := b.each(len(found), func(i int) (*treeNode, error) {
		node := describe(&found[i], at)
		children, err := b.descend(ctx, at, &found[i], level+1)
		node.Children = children
		return node, err
	})
	for _, t := range app.Spec.ResourceTemplates {
		if !slices.ContainsFunc(found, func(kar unstructured.Unstructured) bool { return kar.GetName() == t.Metadata.Name }) {
			id := manifest.ID{Group: kind.Group, Kind: kind.Kind, Namespace: app.Namespace, Name: t.Metadata.Name}
			node := newNode(id, at)
			node.Health, node.Message = health.NotFound, "the application has made no such resource"
			if app.Spec.ClusterName == "" {
				node.Message = "made when the application is scheduled"
			}
			nodes = append(nodes, node)
		}
	}
	sortNodes(nodes)
	return nodes, err
}

// ofResource returns the object of a resource, and the copies of its Secrets, as they are in the
// user cluster.
func (b *builder) ofResource(ctx context.Context, at *clusterReader, kar *v1alpha1.KubernetesApplicationResource, level int) ([]*treeNode, error) {
	if kar.Spec.ClusterName == "" {
		return nil, nil
	}
	key := types.NamespacedName{Namespace: kar.Namespace, Name: kar.Spec.ClusterName}
	target, err := b.readerOf(ctx, at, key)
	if err == nil {
		err = target.reach(ctx)
	}
	if err != nil {
		return []*treeNode{lastSeen(kar, err)}, nil
	}
	b.hold(target, kar.Status.Held)
	nodes := b.objects(ctx, target, delivered(kar, target), level)
	for _, node := range nodes {
		node.Message = joined("in "+target.name(), node.Message)
	}
	return nodes, nil
}

// delivered returns the objects of a resource: the templated one, whether or not it exists, and the
// rest of its inventory.
func delivered(kar *v1alpha1.KubernetesApplicationResource, target *clusterReader) []manifest.ID {
	var ids []manifest.ID
	if in := kar.Status.Inventory; in != nil {
		ids, _ = inventory.Decode(in.Entries) // what cannot be read is not ours
	}
	gvk, metadata := kar.Spec.Template.GroupVersionKind(), kar.Spec.Template.Metadata
	templated := func(id manifest.ID) bool {
		return id.Group == gvk.Group && id.Kind == gvk.Kind && id.Name == metadata.Name
	}
	if slices.ContainsFunc(ids, templated) {
		return ids
	}
	id := manifest.ID{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Namespace: metadata.Namespace, Name: metadata.Name}
	switch namespaced, known := target.namespaced(id); {
	case known && !namespaced:
		id.Namespace = ""
	case known && id.Namespace == "":
		id.Namespace = metav1.NamespaceDefault
	}
	return append(ids, id)
}

// namespaced reports whether the kind of an object is namespaced, and whether the cluster knows it.
func (r *clusterReader) namespaced(id manifest.ID) (namespaced, known bool) {
	mapper, err := r.cluster.Mapper()
	if err != nil {
		return false, false
	}
	mapping, err := mapper.RESTMapping(id.GroupVersionKind().GroupKind(), id.Version)
	if err != nil {
		return false, false
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true
}

// lastSeen returns the node of an object in a cluster that does not answer, with the status that
// the hub has of it.
func lastSeen(kar *v1alpha1.KubernetesApplicationResource, err error) *treeNode {
	gvk, metadata := kar.Spec.Template.GroupVersionKind(), kar.Spec.Template.Metadata
	node := &treeNode{Group: gvk.Group, Kind: gvk.Kind, Namespace: metadata.Namespace, Name: metadata.Name, Cluster: kar.Spec.ClusterName}
	if kar.Status.Namespace != "" {
		node.Namespace = kar.Status.Namespace
	}
	node.Health, node.Message = health.Unknown, "in "+kar.Spec.ClusterName+"; "+err.Error()
	if kar.Status.Remote == nil {
		return node
	}
	object, decodeErr := kar.Spec.Template.Object()
	if decodeErr != nil {
		return node
	}
	status := map[string]any{}
	if json.UnmarshalCaseSensitivePreserveInts(kar.Status.Remote.Raw, &status) == nil {
		object.Object["status"] = status
		seen, _ := health.Of(object)
		node.Message += fmt.Sprintf("; last seen %s", seen)
	}
	return node
}

// readerOf returns the user cluster of that name, of the hub or seed at.
func (b *builder) readerOf(ctx context.Context, at *clusterReader, key types.NamespacedName) (*clusterReader, error) {
	if at == b.home {
		if known := b.reader(key); known != nil {
			return known, nil
		}
	}
	found := once(at, at.users, key, func() outcome[*clusterReader] {
		cluster, err := at.cluster.UserCluster(ctx, key)
		if err != nil {
			return outcome[*clusterReader]{err: at.cluster.Explain(err)}
		}
		return outcome[*clusterReader]{value: newClusterReader(cluster, b.warnings)}
	})
	return found.value, found.err
}

// placed returns the KubernetesApplications that are scheduled to a cluster.
func (b *builder) placed(ctx context.Context, cluster *v1alpha1.KubernetesCluster, level int) ([]*treeNode, error) {
	found, err := b.home.list(ctx, v1alpha1.GroupVersion.WithKind(v1alpha1.KubernetesApplicationKind), client.InNamespace(cluster.Namespace))
	if meta.IsNoMatchError(err) {
		return nil, nil // a hub without the kind
	}
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(app unstructured.Unstructured) bool {
		name, _, _ := unstructured.NestedString(app.Object, "spec", "clusterName")
		return name != cluster.Name
	})
	return b.each(len(found), func(i int) (*treeNode, error) {
		node := describe(&found[i], b.home)
		children, err := b.descend(ctx, b.home, &found[i], level+1)
		node.Children = children
		return node, err
	})
}
