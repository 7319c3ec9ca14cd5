package tree

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"waybill.dev/waybill/api/v1alpha1"
)

// The kinds of Kubernetes that own others, or that others own.
var (
	deployments  = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	statefulSets = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	daemonSets   = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	controllers  = schema.GroupKind{Kind: "ReplicationController"}
	cronJobs     = schema.GroupKind{Group: "batch", Kind: "CronJob"}

	replicaSets = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
	jobs        = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
	pods        = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
)

// ofBuiltIn maps the kinds of Kubernetes that own others to the kinds that they own, so that
// nothing is listed in vain and no unnecessary right is required.
var ofBuiltIn = map[schema.GroupKind][]schema.GroupVersionKind{
	deployments:             {replicaSets},
	statefulSets:            {pods},
	daemonSets:              {pods},
	controllers:             {pods},
	cronJobs:                {jobs},
	replicaSets.GroupKind(): {pods},
	jobs.GroupKind():        {pods},
}

// mostlyOwned are the kinds whose objects nearly all have an owner. They are listed in full at once
// instead of as metadata first.
var mostlyOwned = []schema.GroupVersionKind{replicaSets, jobs, pods}

// owningNothing are the groups of Kubernetes that clientgoscheme does not have.
var owningNothing = map[string]bool{"apiextensions.k8s.io": true, "apiregistration.k8s.io": true}

// childKinds returns the kinds that objects of a kind of Kubernetes own; false for other kinds,
// whose objects may own objects of any kind.
func childKinds(gk schema.GroupKind) (kinds []schema.GroupVersionKind, known bool) {
	return ofBuiltIn[gk], owningNothing[gk.Group] || clientgoscheme.Scheme.IsGroupRegistered(gk.Group)
}

// pending is what is still to be added below a node.
type pending struct {
	at     *clusterReader
	object *unstructured.Unstructured
	level  int
}

// under adds what is below an object to its node: at once what one of our kinds leads to. What
// other objects own is only read, and added by complete.
func (b *builder) under(ctx context.Context, node *treeNode, p pending) error {
	if isOurs(p.object) {
		children, err := b.descend(ctx, p.at, p.object, p.level)
		node.Children = children
		return err
	}
	node.pending = &p
	b.prefetch(ctx, p, map[types.UID]bool{})
	return nil
}

// prefetch reads what an object owns, and what that owns, so that complete need not wait for it.
func (b *builder) prefetch(ctx context.Context, p pending, done map[types.UID]bool) {
	if !b.shows(p.level) || isOurs(p.object) || done[p.object.GetUID()] {
		return
	}
	done[p.object.GetUID()] = true
	for _, d := range p.at.dependents(ctx, p.object) {
		b.prefetch(ctx, pending{at: p.at, object: d.object, level: p.level + 1}, done)
	}
}

// owned returns what an object owns.
func (b *builder) owned(ctx context.Context, p pending) []*treeNode {
	var nodes []*treeNode
	for _, d := range p.at.dependents(ctx, p.object) {
		node := d.node(p.at)
		node.pending = &pending{at: p.at, object: d.object, level: p.level + 1}
		nodes = append(nodes, node)
	}
	sortNodes(nodes)
	return nodes
}

// complete adds what is still missing below a node: what objects own, and the subtrees of
// dependencies. It does so in the order in which the tree is read, so that an object with several
// places in the tree is always shown in full at the same one, and a cycle ends.
func (b *builder) complete(ctx context.Context, node *treeNode, above []*treeNode) {
	if p := node.pending; p != nil {
		node.pending = nil
		b.completeOne(ctx, node, *p, above)
	}
	for _, child := range node.Children {
		b.complete(ctx, child, append(above, node))
	}
}

func (b *builder) completeOne(ctx context.Context, node *treeNode, p pending, above []*treeNode) {
	again := b.seen(p.at, idOf(p.object))
	switch ours := isOurs(p.object); {
	case ours && slices.ContainsFunc(above, node.same):
		node.Message = "depends on itself: the dependencies form a cycle"
	case ours && again, again && b.shows(p.level) && len(p.at.dependents(ctx, p.object)) > 0:
		node.Message = joined(node.Message, "what it is made of is shown at another place of this tree")
	case !again:
		children, err := b.descend(ctx, p.at, p.object, p.level)
		if err != nil {
			b.note(err.Error())
		}
		node.Children = children
	}
}

// isOurs reports whether an object is of one of our kinds.
func isOurs(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().Group == v1alpha1.Group
}
