package tree

import (
	"context"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/sync/manifest"
)

// Tree is what became of an object.
type Tree struct {
	// Warnings say what keeps the tree from being complete.
	Warnings []string

	root *treeNode
	home *clusterReader // of the cluster that the root is in
}

// Member is an object of a tree, and where it is. It may not exist any more, or not yet.
type Member struct {
	manifest.ID
	Cluster *fleet.Cluster
}

// Grow returns the tree of an object of the target, which is given in full. depth is how many levels
// below the object it has; 0 means all.
func Grow(ctx context.Context, target *fleet.Cluster, root *unstructured.Unstructured, depth int) (*Tree, error) {
	return grow(ctx, target, root, depth, fleet.Selection{})
}

// GrowIn is like Grow for all levels, and reads only the user clusters that are selected: of the others, the tree has what the
// target knows at most.
func GrowIn(ctx context.Context, target *fleet.Cluster, root *unstructured.Unstructured, only fleet.Selection) (*Tree, error) {
	return grow(ctx, target, root, 0, only)
}

func grow(ctx context.Context, target *fleet.Cluster, root *unstructured.Unstructured, depth int, only fleet.Selection) (*Tree, error) {
	b := newBuilder(ctx, target, root, depth, only)
	node, err := b.build(ctx, root)
	if err != nil {
		return nil, err
	}
	return &Tree{Warnings: b.all(), root: node, home: b.home}, nil
}

// Members returns the objects of the tree, the root first, each once. Those of clusters that do not
// answer are not among them, nor are the KubernetesClusters that only group others.
func (t *Tree) Members() []Member {
	var members []Member
	seen := map[Member]bool{}
	var add func(*treeNode)
	add = func(node *treeNode) {
		if node.at != nil && node.Name != "" {
			id := manifest.ID{Group: node.Group, Kind: node.Kind, Namespace: node.Namespace, Name: node.Name}
			if m := (Member{ID: id, Cluster: node.at.cluster}); !seen[m] {
				seen[m] = true
				members = append(members, m)
			}
		}
		for _, child := range node.Children {
			add(child)
		}
	}
	add(t.root)
	return members
}

// Print writes the tree as a table.
func (t *Tree) Print(w io.Writer) error { return printTree(w, t.root) }
