package tree

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/membership"
)

// applicationBuilder builds the part of a tree that an Application leads to.
type applicationBuilder struct {
	*builder
	at      *clusterReader
	app     *v1alpha1.Application
	members *membership.Application
	rules   map[schema.GroupKind]*health.Expression // of spec.healthExpressions
	level   int                                     // of the components
}

// ofApplication returns the components of an Application, the objects that name it without being
// its components, its health-check Pod and its dependencies. The
// subtrees of the dependencies are added when everything else is there.
func (b *builder) ofApplication(ctx context.Context, at *clusterReader, app *v1alpha1.Application, level int) ([]*treeNode, error) {
	members, err := membership.Compile(app)
	if err != nil {
		return nil, fmt.Errorf("read Application %s in %s: %w", app.Name, app.Namespace, err)
	}
	p := &applicationBuilder{builder: b, at: at, app: app, members: members, rules: b.rules(app), level: level}
	kinds := validation.ComponentKinds(app)
	found := make([][]*treeNode, len(kinds)+2)
	var all sync.WaitGroup
	for i, gk := range kinds {
		all.Go(func() { found[i] = p.ofKind(ctx, gk) })
	}
	all.Go(func() { found[len(kinds)] = p.healthCheck(ctx) })
	all.Go(func() { found[len(kinds)+1] = p.dependencies(ctx) })
	all.Wait()
	nodes := slices.Concat(found...)
	sortNodes(nodes)
	return nodes, nil
}

// rules returns the health expressions of the Application by kind.
func (b *builder) rules(app *v1alpha1.Application) map[schema.GroupKind]*health.Expression {
	rules := map[schema.GroupKind]*health.Expression{}
	for _, x := range app.Spec.HealthExpressions {
		compiled, err := health.NewExpression(x.Current, x.Failed)
		// Admission rejects this. Without admission, the kind is judged as elsewhere.
		if err != nil {
			b.note(fmt.Sprintf("Application %s in %s: healthExpressions of %s: %s", app.Name, app.Namespace, x.Kind, err))
			continue
		}
		rules[schema.GroupKind{Group: x.Group, Kind: x.Kind}] = compiled
	}
	return rules
}

// healthCheck returns the Pod that was created from spec.healthCheck.
func (p *applicationBuilder) healthCheck(ctx context.Context) []*treeNode {
	if p.app.Spec.HealthCheck == nil {
		return nil
	}
	var nodes []*treeNode
	for _, d := range p.at.inFull(ctx, place{kind: pods, namespace: p.app.Namespace})[p.app.UID] {
		if !isHealthCheck(d.object) {
			continue
		}
		node := d.node(p.at)
		node.Message = joined("the health check", node.Message)
		nodes = append(nodes, node)
	}
	if len(nodes) == 0 {
		node := newNode(manifest.ID{Kind: pods.Kind, Namespace: p.app.Namespace}, p.at)
		node.Health, node.Message = health.NotFound, "the health check"
		nodes = append(nodes, node)
	}
	return nodes
}

// isHealthCheck reports whether an object is the Pod of a health check, which is not a component.
func isHealthCheck(object metav1.Object) bool {
	_, found := object.GetLabels()[v1alpha1.HealthCheckLabel]
	return found
}

// dependencies returns the Applications that this one needs.
func (p *applicationBuilder) dependencies(ctx context.Context) []*treeNode {
	names := p.app.Spec.Dependencies
	nodes, _ := p.each(len(names), func(i int) (*treeNode, error) {
		object, node := p.at.read(ctx, applicationID(p.app.Namespace, names[i]))
		if object == nil {
			node.Message = joined("a dependency", node.Message)
			return node, nil
		}
		node.pending = &pending{at: p.at, object: object, level: p.level + 1}
		return node, nil
	})
	return nodes
}

// names reports whether an object's annotation names the Application.
func (p *applicationBuilder) names(object metav1.Object) bool {
	return object.GetAnnotations()[v1alpha1.ApplicationAnnotation] == p.app.Name
}

// owns reports whether an object has an ownerReference to this very Application.
func (p *applicationBuilder) owns(object metav1.Object) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == p.app.UID })
}
