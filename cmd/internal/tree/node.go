package tree

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
)

// treeNode is one object of the tree; -o json and yaml print it as it is.
type treeNode struct {
	// Group, Kind, Namespace and Name of the object. The name is empty for a kind that an
	// Application lists and has no object of.
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`

	// Cluster that the object is in: the name of its KubernetesCluster, or that of the kubeconfig's
	// context if the hub has none or the tree leads to no other cluster.
	Cluster string `json:"cluster"`

	// Health in kstatus terms, and a message about it.
	Health  health.Status `json:"health"`
	Message string        `json:"message,omitempty"`

	// Version of an application, or revision of a source.
	Version string `json:"version,omitempty"`

	// Children are what the object delivers, installs or owns.
	Children []*treeNode `json:"children,omitempty"`

	// at reads the cluster that the object is in; nil where only the hub has a record of it.
	at *clusterReader
	// seed is the key of the one that has the KubernetesCluster that the node stands for; zero if the hub has it.
	seed types.NamespacedName

	// uid and resourceVersion are those of the object that was read; empty if none was.
	uid             types.UID
	resourceVersion string

	// pending is added below the node when everything else is there.
	pending *pending
}

// same reports whether two nodes stand for one object.
func (n *treeNode) same(other *treeNode) bool {
	return n.Group == other.Group && n.Kind == other.Kind && n.Namespace == other.Namespace &&
		n.Name == other.Name && n.Cluster == other.Cluster
}

func newNode(id manifest.ID, at *clusterReader) *treeNode {
	return &treeNode{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name, Cluster: at.name(), at: at}
}

// read notes which state of the object the node is made of.
func (n *treeNode) read(object metav1.Object) {
	n.uid, n.resourceVersion = object.GetUID(), object.GetResourceVersion()
}

// sortNodes sorts siblings into an order that does not depend on who answered first.
func sortNodes(nodes []*treeNode) {
	slices.SortFunc(nodes, func(a, b *treeNode) int {
		return cmp.Or(
			cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		)
	})
}
