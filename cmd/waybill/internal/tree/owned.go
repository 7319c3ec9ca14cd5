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
// nothing is listed in vain and no unnecessary right is required (A40).
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

// childKinds returns the kinds that objects of a kind of Kubernetes own; false for other kinds,
// whose objects may own objects of any kind.
func childKinds(gk schema.GroupKind) (kinds []schema.GroupVersionKind, known bool) {
	return ofBuiltIn[gk], clientgoscheme.Scheme.IsGroupRegistered(gk.Group)
}

// rest is what is still to be added below a node.
type rest struct {
	at     *site
	object *unstructured.Unstructured
	level  int
}

// under adds what is below an object to its node: at once what one of our kinds leads to. What
// other objects own is only read, and added by complete.
func (b *builder) under(ctx context.Context, node *treeNode, r rest) error {
	if isOurs(r.object) {
		children, err := b.descend(ctx, r.at, r.object, r.level)
		node.Children = children
		return err
	}
	node.rest = &r
	b.prefetch(ctx, r, map[types.UID]bool{})
	return nil
}

// prefetch reads what an object owns, and what that owns, so that complete need not wait for it.
func (b *builder) prefetch(ctx context.Context, r rest, done map[types.UID]bool) {
	if !b.shows(r.level) || isOurs(r.object) || done[r.object.GetUID()] {
		return
	}
	done[r.object.GetUID()] = true
	for _, d := range r.at.dependents(ctx, r.object) {
		b.prefetch(ctx, rest{at: r.at, object: d.object, level: r.level + 1}, done)
	}
}

// owned returns what an object owns, in its own namespace.
func (b *builder) owned(ctx context.Context, r rest) []*treeNode {
	var nodes []*treeNode
	for _, d := range r.at.dependents(ctx, r.object) {
		node := d.node(r.at.name())
		node.rest = &rest{at: r.at, object: d.object, level: r.level + 1}
		nodes = append(nodes, node)
	}
	sortNodes(nodes)
	return nodes
}

// complete adds what is still missing below a node: what objects own, and the subtrees of
// dependencies. It does so in the order in which the tree is read, so that an object with several
// places in the tree is always shown in full at the same one, and a cycle ends.
func (b *builder) complete(ctx context.Context, node *treeNode, above []*treeNode) {
	if r := node.rest; r != nil {
		node.rest = nil
		b.completeOne(ctx, node, *r, above)
	}
	for _, child := range node.Children {
		b.complete(ctx, child, append(above, node))
	}
}

func (b *builder) completeOne(ctx context.Context, node *treeNode, r rest, above []*treeNode) {
	again := b.seen(r.at, idOf(r.object))
	switch ours := isOurs(r.object); {
	case ours && slices.ContainsFunc(above, node.same):
		node.Message = "depends on itself: the dependencies form a cycle"
	case ours && again, again && b.shows(r.level) && len(r.at.dependents(ctx, r.object)) > 0:
		node.Message = joined(node.Message, "what it is made of is shown at another place of this tree")
	case !again:
		children, err := b.descend(ctx, r.at, r.object, r.level)
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
