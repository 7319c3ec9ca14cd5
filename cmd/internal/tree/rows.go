package tree

import (
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/sync/health"
)

// Row is one object of a tree.
type Row struct {
	// Level of the object: 1 is the root.
	Level int
	// Group, Kind, Namespace and Name of the object. The name is empty for a kind that an Application
	// lists and has no object of.
	Group, Kind, Namespace, Name string
	// Cluster is the name of the cluster that the object is in, and ClusterKey that of its
	// KubernetesCluster; zero for a hub that has none, and where only the hub has a record of the
	// object. Seed is the key of the seed that has the KubernetesCluster; zero if the hub has it.
	Cluster          string
	ClusterKey, Seed types.NamespacedName
	// Health in the terms of kstatus, and a message about it.
	Health  health.Status
	Message string
	// Version of an application, or revision of a source.
	Version string
}

// Rows returns the objects of the tree in the order in which Print shows them.
func (t *Tree) Rows() []Row {
	var rows []Row
	var add func(*treeNode, int)
	add = func(n *treeNode, level int) {
		row := Row{
			Level: level, Group: n.Group, Kind: n.Kind, Namespace: n.Namespace, Name: n.Name, Cluster: n.Cluster,
			Health: n.Health, Message: n.Message, Version: n.Version, Seed: n.seed,
		}
		if n.at != nil {
			row.ClusterKey, row.Seed = n.at.cluster.Key, seedOf(n.at.cluster)
		}
		rows = append(rows, row)
		for _, child := range n.Children {
			add(child, level+1)
		}
	}
	add(t.root, 1)
	return rows
}

// seedOf returns the key of the seed that drives a cluster; zero if none does.
func seedOf(cluster *fleet.Cluster) types.NamespacedName {
	if seed := cluster.Seed(); seed != nil {
		return seed.Key
	}
	return types.NamespacedName{}
}
