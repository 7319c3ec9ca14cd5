package tree

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownedKinds are the kinds that are looked at for owners: what the controllers of
// Kubernetes, and most others, make.
var ownedKinds = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"},
	{Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"},
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"},
	{Group: "batch", Version: "v1", Kind: "CronJob"},
	{Group: "batch", Version: "v1", Kind: "Job"},
	{Version: "v1", Kind: "Pod"},
}

// childless are groups none of whose objects own any of ownedKinds.
var childless = map[string]bool{
	"rbac.authorization.k8s.io": true, "networking.k8s.io": true, "policy": true, "autoscaling": true,
	"apiextensions.k8s.io": true, "admissionregistration.k8s.io": true, "storage.k8s.io": true, "scheduling.k8s.io": true,
}

// index holds the objects of ownedKinds of a namespace by the UID of their owner.
type index map[types.UID][]*unstructured.Unstructured

// owned returns what an object owns, in its own namespace.
func (b *builder) owned(ctx context.Context, at *site, object *unstructured.Unstructured, level int) []*Node {
	group := object.GroupVersionKind().Group
	if object.GetNamespace() == "" || childless[group] || group == "" && object.GetKind() != "ReplicationController" {
		return nil
	}
	children := at.index(ctx, object.GetNamespace())[object.GetUID()]
	nodes, _ := b.each(len(children), func(i int) (*Node, error) {
		node := describe(children[i], at.name())
		below, err := b.descend(ctx, at, children[i], level+1)
		node.Children = below
		return node, err
	})
	return nodes
}

// index lists the objects of a namespace that may have owners, once.
func (s *site) index(ctx context.Context, namespace string) index {
	s.mu.Lock()
	load, ok := s.owned[namespace]
	if !ok {
		load = sync.OnceValue(func() index { return s.loadIndex(ctx, namespace) })
		s.owned[namespace] = load
	}
	s.mu.Unlock()
	return load()
}

func (s *site) loadIndex(ctx context.Context, namespace string) index {
	lists := make([][]unstructured.Unstructured, len(ownedKinds))
	var all sync.WaitGroup
	for i, kind := range ownedKinds {
		all.Go(func() {
			var err error
			if lists[i], err = s.list(ctx, kind, client.InNamespace(namespace)); err != nil {
				s.note(fmt.Sprintf("what objects own is not complete: cluster %s: %s", s.name(), err))
			}
		})
	}
	all.Wait()
	byOwner := index{}
	for _, list := range lists {
		for i := range list {
			if retired(&list[i]) {
				continue
			}
			for _, owner := range list[i].GetOwnerReferences() {
				byOwner[owner.UID] = append(byOwner[owner.UID], &list[i])
			}
		}
	}
	return byOwner
}

// retired says whether an object is a ReplicaSet that its Deployment keeps for a rollback.
func retired(object *unstructured.Unstructured) bool {
	if object.GetKind() != "ReplicaSet" {
		return false
	}
	wanted, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	there, _, _ := unstructured.NestedInt64(object.Object, "status", "replicas")
	return wanted == 0 && there == 0
}
