package tree

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
)

// ofKind returns the components of one kind, including those that are listed but missing. A kind
// that may not be listed, or does not exist, does not affect the others.
func (p *applicationBuilder) ofKind(ctx context.Context, gk schema.GroupKind) []*treeNode {
	mapping, err := p.at.mappingIn(gk)
	if err != nil {
		return p.unread(gk, err)
	}
	found, err := p.look(ctx, mapping)
	if err != nil {
		return p.unread(gk, err)
	}
	kind := mapping.GroupVersionKind
	live, err := p.live(ctx, kind, found)
	if err != nil {
		return p.unread(gk, err)
	}
	var shown []*metav1.PartialObjectMetadata
	for i := range found {
		if p.shows(gk, &found[i]) {
			shown = append(shown, &found[i])
		}
	}
	nodes, _ := p.each(len(shown), func(i int) (*treeNode, error) { return p.component(ctx, kind, shown[i], live), nil })
	return append(nodes, p.missing(gk, found)...)
}

// look returns the metadata of the objects of a kind in the namespace. A user who may only get them
// sees those that are listed by name.
func (p *applicationBuilder) look(ctx context.Context, mapping *meta.RESTMapping) ([]metav1.PartialObjectMetadata, error) {
	kind := mapping.GroupVersionKind
	found, err := p.at.metadata(ctx, mapping.Resource, place{kind: kind, namespace: p.app.Namespace})
	names, every := p.listed(kind.GroupKind())
	if !apierrors.IsForbidden(err) || every {
		return found, err
	}
	c, failed := p.at.client()
	if failed != nil {
		return nil, failed
	}
	for _, name := range names {
		object := metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		release := p.at.acquire()
		failed := c.Get(ctx, client.ObjectKey{Namespace: p.app.Namespace, Name: name}, &object)
		release()
		switch {
		case failed == nil:
			found = append(found, object)
		case !apierrors.IsNotFound(failed):
			return nil, err
		}
	}
	return found, nil
}

// live returns the members of a kind in full, by name, from one list; none for a kind whose
// metadata suffices.
func (p *applicationBuilder) live(ctx context.Context, kind schema.GroupVersionKind, found []metav1.PartialObjectMetadata) (map[string]*unstructured.Unstructured, error) {
	gk := kind.GroupKind()
	member := func(o metav1.PartialObjectMetadata) bool { return p.names(&o) && p.members.Matches(gk, &o) }
	if !p.inFull(gk) || !slices.ContainsFunc(found, member) {
		return nil, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(p.app.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("read selector: %w", err)
	}
	list, err := p.at.list(ctx, kind, client.InNamespace(p.app.Namespace), client.MatchingLabelsSelector{Selector: selector})
	if apierrors.IsForbidden(err) {
		return nil, nil // each is read by its name
	}
	live := map[string]*unstructured.Unstructured{}
	for i := range list {
		live[list[i].GetName()] = &list[i]
	}
	return live, err
}

// shows reports whether an object of a listed kind is worth a line: a component, an object that
// claims to be one, and one that should be.
func (p *applicationBuilder) shows(gk schema.GroupKind, object metav1.Object) bool {
	names, _ := p.listed(gk)
	return slices.Contains(names, object.GetName()) || p.names(object) && !isHealthCheck(object)
}

// inFull reports whether objects of a kind are read in full, because their health depends on more
// than their metadata. Secrets never are, nor is any other kind without a status: of those,
// healthExpressions see metadata, as they do in the controller.
func (p *applicationBuilder) inFull(gk schema.GroupKind) bool {
	if p.rules[gk] != nil {
		return health.ReportsStatus(gk)
	}
	return health.HasStatus(gk)
}

// component returns the node of an existing object.
func (p *applicationBuilder) component(ctx context.Context, kind schema.GroupVersionKind, found *metav1.PartialObjectMetadata, live map[string]*unstructured.Unstructured) *treeNode {
	id := manifest.ID{Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: found.Namespace, Name: found.Name}
	object, node := live[found.Name], newNode(id, p.at)
	switch {
	case object != nil:
		node = describe(object, p.at)
	case !p.inFull(kind.GroupKind()):
		node.read(found)
		node.Health, node.Message = health.OfMetadata(found.DeletionTimestamp != nil)
		var err error
		if object, err = withoutContent(kind, found); err != nil {
			p.note(err.Error())
		}
	default:
		object, node = p.at.read(ctx, id)
	}
	if rule := p.rules[kind.GroupKind()]; rule != nil && object != nil {
		node.Health, node.Message = rule.Of(object)
	}
	node.Message = joined(p.mismatch(kind.GroupKind(), found), node.Message)
	p.claim(p.at, id)
	if object != nil {
		if err := p.under(ctx, node, pending{p.at, object, p.level + 1}); err != nil {
			p.note(err.Error())
		}
	}
	return node
}

// mismatch returns what keeps an object from fully belonging to the Application; empty if nothing
// does.
func (p *applicationBuilder) mismatch(gk schema.GroupKind, object metav1.Object) string {
	whose, annotated := object.GetAnnotations()[v1alpha1.ApplicationAnnotation]
	switch {
	case !annotated:
		return "no component: it lacks the annotation " + v1alpha1.ApplicationAnnotation
	case whose == "":
		return "no component: its annotation says that it belongs to none"
	case whose != p.app.Name:
		return "no component: it belongs to Application " + whose
	case !p.members.Selects(object.GetLabels()):
		return "orphaned: its labels do not match the selector"
	case !p.members.Lists(gk, object.GetName()):
		return "no component: spec.components does not list it"
	case p.members.Ownership == v1alpha1.OwnershipOwn && !p.owns(object):
		return "not owned yet"
	}
	return ""
}

// missing returns the components that are listed but do not exist.
func (p *applicationBuilder) missing(gk schema.GroupKind, found []metav1.PartialObjectMetadata) []*treeNode {
	names, every := p.listed(gk)
	var nodes []*treeNode
	for _, name := range names {
		if !slices.ContainsFunc(found, func(o metav1.PartialObjectMetadata) bool { return o.Name == name }) {
			node := p.node(gk, name)
			node.Health, node.Message = health.Of(nil)
			nodes = append(nodes, node)
		}
	}
	member := func(o metav1.PartialObjectMetadata) bool { return p.names(&o) && p.members.Selects(o.Labels) }
	if every && !slices.ContainsFunc(found, member) {
		node := p.node(gk, "")
		node.Health, node.Message = health.NotFound, "no object of the kind is selected"
		nodes = append(nodes, node)
	}
	return nodes
}

// unread returns the components of a kind that could not be read, with the reason.
func (p *applicationBuilder) unread(gk schema.GroupKind, err error) []*treeNode {
	names, every := p.listed(gk)
	if every {
		names = append(names, "")
	}
	status, message := unread(err)
	if apierrors.IsNotFound(err) { // of a list: it is the version of the kind that has gone
		status, message = health.Unknown, err.Error()
	}
	nodes := make([]*treeNode, len(names))
	for i, name := range names {
		nodes[i] = p.node(gk, name)
		nodes[i].Health, nodes[i].Message = status, message
	}
	return nodes
}

func (p *applicationBuilder) node(gk schema.GroupKind, name string) *treeNode {
	return newNode(manifest.ID{Group: gk.Group, Kind: gk.Kind, Namespace: p.app.Namespace, Name: name}, p.at)
}

// listed returns the names that spec.components lists for a kind, and whether it also lists every
// object of the kind.
func (p *applicationBuilder) listed(gk schema.GroupKind) (names []string, every bool) {
	for _, c := range p.app.Spec.Components {
		switch {
		case c.Group != gk.Group || c.Kind != gk.Kind:
		case c.Name == "":
			every = true
		default:
			names = append(names, c.Name)
		}
	}
	return names, every
}

// joined joins the parts that are not empty.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}
