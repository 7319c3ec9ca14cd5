package tree

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/sync/health"
)

// Site identifies the objects of a kind in a namespace of a cluster, or those without a namespace.
type Site struct {
	// Seed and Cluster are the keys of KubernetesClusters: of the seed that drives the cluster, if one does, and of the
	// cluster; zero for a hub that has none.
	Seed, Cluster types.NamespacedName
	Kind          schema.GroupKind
	Namespace     string
}

// Sketch is what has to be watched to know when a tree is not what it was, and what it was: of each object no more than its
// name and version. It is not modified after it was drawn, and is safe for concurrent use.
type Sketch struct {
	// Sites that the tree has objects at, those whose objects have a health of their own first.
	Sites []Site
	// Clusters has the cluster of each site, as it was read.
	Clusters map[Site]*fleet.Cluster

	versions map[Site]map[string]string // by name; empty for what did not exist, unknown for what was not read
	owners   map[types.UID]bool         // objects of the tree, which may own others
	apps     map[Site]map[string]bool   // the Applications among them, at the site of the Applications
	aside    map[types.UID]string       // versions of what belongs to objects of the tree and is not shown
	every    map[Site]bool              // where each object concerns the tree
}

// unknown is the version of an object that could not be read.
const unknown = "?"

// Sketch returns what has to be watched of the first objects of the tree: most of them at most.
func (t *Tree) Sketch(most int) *Sketch {
	s := &Sketch{
		Clusters: map[Site]*fleet.Cluster{}, versions: map[Site]map[string]string{}, owners: map[types.UID]bool{}, apps: map[Site]map[string]bool{},
		aside: map[types.UID]string{}, every: map[Site]bool{},
	}
	readers := map[*clusterReader]bool{}
	var add func(*treeNode)
	add = func(n *treeNode) {
		if most--; most < 0 {
			return
		}
		at, group := n.at, schema.GroupKind{Group: n.Group, Kind: n.Kind}
		if at == nil && group == (schema.GroupKind{Group: v1alpha1.Group, Kind: v1alpha1.KubernetesClusterKind}) {
			at = t.home // it stands for what the cluster has, and the hub knows whether that answers
		}
		if at != nil {
			readers[at] = true
			s.add(at.cluster, group, n)
		}
		for _, child := range n.Children {
			add(child)
		}
	}
	add(t.root)
	for r := range readers {
		r.mu.Lock()
		maps.Copy(s.aside, r.aside)
		r.mu.Unlock()
	}
	slices.SortStableFunc(s.Sites, func(a, b Site) int { return cmp.Compare(rank(a.Kind), rank(b.Kind)) })
	return s
}

// rank sorts kinds whose objects become well, or not, before those that only are there.
func rank(kind schema.GroupKind) int {
	if health.HasStatus(kind) {
		return 0
	}
	return 1
}

// add adds an object of a cluster, and the sites of what it may come to own.
func (s *Sketch) add(cluster *fleet.Cluster, kind schema.GroupKind, n *treeNode) {
	at := s.site(cluster, kind, n.Namespace)
	if n.Name != "" {
		s.versions[at][n.Name] = n.version()
	}
	if n.uid != "" {
		s.owners[n.uid] = true
	}
	children, _ := childKinds(kind)
	for _, child := range children {
		s.site(cluster, child.GroupKind(), n.Namespace)
	}
	if kind.Group != v1alpha1.Group {
		return
	}
	switch kind.Kind {
	case v1alpha1.ApplicationKind:
		if s.apps[at] == nil {
			s.apps[at] = map[string]bool{}
		}
		s.apps[at][n.Name] = true
	case v1alpha1.KubernetesApplicationKind:
		s.site(cluster, schema.GroupKind{Group: v1alpha1.Group, Kind: v1alpha1.KubernetesApplicationResourceKind}, n.Namespace)
	case v1alpha1.StatefulApplicationKind: // whose they are is not in their metadata
		for _, kind := range []string{v1alpha1.ApplicationSnapshotKind, v1alpha1.ApplicationRollbackKind} {
			s.every[s.site(cluster, schema.GroupKind{Group: v1alpha1.Group, Kind: kind}, n.Namespace)] = true
		}
	}
}

func (s *Sketch) site(cluster *fleet.Cluster, kind schema.GroupKind, namespace string) Site {
	at := Site{Seed: seedOf(cluster), Cluster: cluster.Key, Kind: kind, Namespace: namespace}
	if s.versions[at] == nil {
		s.versions[at] = map[string]string{}
		s.Clusters[at] = cluster
		s.Sites = append(s.Sites, at)
	}
	return at
}

// version returns the version of the object that the node has been made of.
func (n *treeNode) version() string {
	if n.uid == "" && n.Health != health.NotFound {
		return unknown
	}
	return n.resourceVersion
}

// Concerns reports whether the tree may be another one after a change of an object at a site, its creation and deletion
// included.
func (s *Sketch) Concerns(at Site, object metav1.Object) bool {
	if _, shown := s.versions[at][object.GetName()]; shown || s.every[at] {
		return true
	}
	for _, owner := range object.GetOwnerReferences() {
		if s.owners[owner.UID] {
			return true
		}
	}
	apps := at
	apps.Kind = schema.GroupKind{Group: v1alpha1.Group, Kind: v1alpha1.ApplicationKind}
	return s.apps[apps][object.GetAnnotations()[v1alpha1.ApplicationAnnotation]]
}

// Outdated reports whether the tree may be another one, now that these are all objects at a site.
func (s *Sketch) Outdated(at Site, now []metav1.Object) bool {
	there := map[string]bool{}
	for _, object := range now {
		there[object.GetName()] = true
		was, shown := s.versions[at][object.GetName()]
		if !shown {
			was, shown = s.aside[object.GetUID()]
		}
		switch {
		case shown && (was == unknown || was == object.GetResourceVersion()):
		case shown, s.Concerns(at, object):
			return true
		}
	}
	for name, was := range s.versions[at] {
		if was != "" && was != unknown && !there[name] {
			return true
		}
	}
	return false
}

// SameObjects reports whether two sketches are of trees of the same objects, whatever their versions: what has concerned the one
// concerns the other.
func (s *Sketch) SameObjects(other *Sketch) bool {
	return maps.Equal(s.owners, other.owners) && maps.EqualFunc(s.versions, other.versions, func(a, b map[string]string) bool {
		return maps.EqualFunc(a, b, func(string, string) bool { return true })
	})
}
