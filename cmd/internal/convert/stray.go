package convert

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
)

// warnOfStrays warns of objects that would be part of no Application, because their annotation names
// one that does not exist: the new Application would be ready without them. Where the Applications
// come from files, these are the other objects of the files, else those of the cluster that an
// Application selects.
func (o *options) warnOfStrays(ctx context.Context, found []source, apps []*v1alpha1.Application) error {
	namespace, _ := o.env.NamespaceOffline()
	known := applicationNames{fallback: namespace, names: map[types.NamespacedName]bool{}}
	for _, s := range found {
		known.add(s.object)
	}
	if len(o.files) > 0 {
		o.warnOfFiles(known)
		return nil
	}
	target, err := o.env.Target(ctx)
	if err != nil {
		return err
	}
	for _, app := range apps {
		if err := o.warnOfSelected(ctx, target, app, known); err != nil {
			return target.Explain(err)
		}
	}
	return nil
}

// applicationNames are the Applications that exist, or are about to.
type applicationNames struct {
	// fallback is the namespace of objects that name none.
	fallback string
	names    map[types.NamespacedName]bool
}

func (n applicationNames) add(app metav1.Object) { n.names[n.key(app, app.GetName())] = true }

func (n applicationNames) key(of metav1.Object, name string) types.NamespacedName {
	if of.GetNamespace() == "" {
		return types.NamespacedName{Namespace: n.fallback, Name: name}
	}
	return types.NamespacedName{Namespace: of.GetNamespace(), Name: name}
}

// named returns the Application that the annotation of an object names; false if that is known, or if
// there is none.
func (n applicationNames) named(object metav1.Object) (types.NamespacedName, bool) {
	key := n.key(object, object.GetAnnotations()[v1alpha1.ApplicationAnnotation])
	return key, key.Name != "" && !n.names[key]
}

func (o *options) warnOfFiles(known applicationNames) {
	for _, s := range o.others {
		if isApplication(s.object) {
			known.add(s.object)
		}
	}
	for _, s := range o.others {
		if key, stray := known.named(s.object); stray {
			o.warnOfStray(fmt.Sprintf("%s: %s/%s", s.place, s.object.GetKind(), s.object.GetName()), key, "not among the files")
		}
	}
}

func isApplication(object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind()
	return kind.Group == v1alpha1.Group && kind.Kind == v1alpha1.ApplicationKind
}

func (o *options) warnOfStray(object string, key types.NamespacedName, why string) {
	o.env.Warnf("%s: annotation %s names Application %q, which is %s: the object is part of no Application until there is one of that name in namespace %s; correct the annotation, or remove it to follow labels",
		object, v1alpha1.ApplicationAnnotation, key.Name, why, key.Namespace)
}

// warnOfSelected warns of objects in the cluster that an Application lists and selects. Kinds that the
// cluster does not have are left to the status of the Application.
func (o *options) warnOfSelected(ctx context.Context, target *fleet.Cluster, app *v1alpha1.Application, known applicationNames) error {
	selector, err := metav1.LabelSelectorAsSelector(app.Spec.Selector)
	if err != nil {
		return err
	}
	mapper, err := target.Mapper()
	if err != nil {
		return err
	}
	for _, component := range app.Spec.Components {
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: component.Group, Kind: component.Kind})
		if meta.IsNoMatchError(err) || err == nil && mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			continue
		}
		if err != nil {
			return err
		}
		selected, err := target.ListMetadata(ctx, mapping.Resource, app.Namespace, selector.String())
		if apierrors.IsForbidden(err) {
			o.env.Warnf("you may not list %s in namespace %s: whether their annotation names another Application is not known", mapping.Resource.Resource, app.Namespace)
			continue
		}
		if err != nil {
			return err
		}
		for i := range selected {
			if err := o.warnOfOne(ctx, target, component.Kind, &selected[i], known); err != nil {
				return err
			}
		}
	}
	return nil
}

// warnOfOne warns of an object in the cluster, unless the Application that it names is there.
func (o *options) warnOfOne(ctx context.Context, target *fleet.Cluster, kind string, object metav1.Object, known applicationNames) error {
	key, stray := known.named(object)
	if !stray {
		return nil
	}
	c, err := target.Client()
	if err != nil {
		return err
	}
	switch err := c.Get(ctx, key, &v1alpha1.Application{}); {
	case err == nil:
		known.names[key] = true
		return nil
	case client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err):
		return err
	}
	o.warnOfStray(fmt.Sprintf("%s/%s in %s", kind, object.GetName(), object.GetNamespace()), key, "not there")
	return nil
}
