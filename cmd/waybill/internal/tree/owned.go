package tree

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The kinds that are searched for owners: those that the controllers of Kubernetes, and most
// others, create.
var (
	deployments  = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	statefulSets = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}
	daemonSets   = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}
	replicaSets  = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
	cronJobs     = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"}
	jobs         = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	pods         = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

	ownedKinds = []schema.GroupVersionKind{deployments, statefulSets, daemonSets, replicaSets, cronJobs, jobs, pods}
)

// ofBuiltIn maps the kinds of Kubernetes that own others to the kinds that they own, so that
// nothing is listed in vain and no unnecessary right is required (A40).
var ofBuiltIn = map[schema.GroupKind][]schema.GroupVersionKind{
	deployments.GroupKind():         {replicaSets},
	statefulSets.GroupKind():        {pods},
	daemonSets.GroupKind():          {pods},
	replicaSets.GroupKind():         {pods},
	cronJobs.GroupKind():            {jobs},
	jobs.GroupKind():                {pods},
	{Kind: "ReplicationController"}: {pods},
}

// builtIn lists the groups of Kubernetes. Kinds in them that are not in ofBuiltIn own none of
// ownedKinds.
var builtIn = map[string]bool{
	"": true, "apps": true, "batch": true,
	"rbac.authorization.k8s.io": true, "networking.k8s.io": true, "policy": true, "autoscaling": true,
	"apiextensions.k8s.io": true, "admissionregistration.k8s.io": true, "storage.k8s.io": true, "scheduling.k8s.io": true,
}

// childKinds returns the kinds that objects of a kind may own; for a kind that a
// CustomResourceDefinition defines, all of ownedKinds.
func childKinds(gk schema.GroupKind) []schema.GroupVersionKind {
	if builtIn[gk.Group] {
		return ofBuiltIn[gk]
	}
	return ownedKinds
}

// index holds the objects of a kind in a namespace by the UID of their owner.
type index map[types.UID][]*unstructured.Unstructured

// owned returns what an object owns, in its own namespace.
func (b *builder) owned(ctx context.Context, at *site, object *unstructured.Unstructured, level int) []*Node {
	if object.GetNamespace() == "" {
		return nil
	}
	children := at.children(ctx, object)
	nodes, _ := b.each(len(children), func(i int) (*Node, error) {
		node := describe(children[i], at.name())
		below, err := b.descend(ctx, at, children[i], level+1)
		node.Children = below
		return node, err
	})
	return nodes
}

// children returns the objects that an object owns, of the kinds that its kind may own.
func (s *site) children(ctx context.Context, of *unstructured.Unstructured) []*unstructured.Unstructured {
	kinds := childKinds(of.GroupVersionKind().GroupKind())
	found := make([][]*unstructured.Unstructured, len(kinds))
	var all sync.WaitGroup
	for i, kind := range kinds {
		all.Go(func() { found[i] = s.index(ctx, place{kind: kind, namespace: of.GetNamespace()})[of.GetUID()] })
	}
	all.Wait()
	return slices.Concat(found...)
}

// index lists the objects of a kind in a namespace, once.
func (s *site) index(ctx context.Context, in place) index {
	s.mu.Lock()
	load, ok := s.owned[in]
	if !ok {
		load = sync.OnceValue(func() index { return s.loadIndex(ctx, in) })
		s.owned[in] = load
	}
	s.mu.Unlock()
	return load()
}

func (s *site) loadIndex(ctx context.Context, in place) index {
	list, err := s.list(ctx, in.kind, client.InNamespace(in.namespace))
	if err != nil {
		s.note(fmt.Sprintf("what objects own is not complete: cluster %s: %s", s.name(), err))
		return nil
	}
	byOwner := index{}
	for i := range list {
		if retired(&list[i]) {
			continue
		}
		for _, owner := range list[i].GetOwnerReferences() {
			byOwner[owner.UID] = append(byOwner[owner.UID], &list[i])
		}
	}
	return byOwner
}

// retired reports whether an object is a ReplicaSet that its Deployment keeps for a rollback.
func retired(object *unstructured.Unstructured) bool {
	if object.GetKind() != "ReplicaSet" {
		return false
	}
	wanted, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	there, _, _ := unstructured.NestedInt64(object.Object, "status", "replicas")
	return wanted == 0 && there == 0
}
