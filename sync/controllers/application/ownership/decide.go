package ownership

import (
	"encoding/json"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/controllers/application/tracker"
	"waybill.dev/waybill/sync/membership"
)

// decision is how the metadata of an object must change, and which Applications contend for it.
type decision struct {
	marks membership.Marks
	// owners are the references that the object is to have, if reown is set.
	owners []metav1.OwnerReference
	reown  bool
	// given is the Application that gets a reference; nil for none.
	given *membership.Application
	// contenders are the Applications that all match an object which names none, if there are at
	// least two.
	contenders []types.NamespacedName
}

func (d decision) nothing() bool { return d.marks.Empty() && !d.reown }

// decide returns what has to change on an object. It is pure except for what Owners know.
func (o *Owners) decide(object *tracker.Object) decision {
	var d decision
	if object.Deleting || IsHealthCheck(object) {
		return d
	}
	meta := object.GetObjectMeta()
	d.marks = membership.Decide(o.Index, object.GroupKind, meta)
	d.marks.Apply(meta)
	name, named := meta.GetAnnotations()[v1alpha1.ApplicationAnnotation]
	if !named {
		d.contenders = o.contenders(object.GroupKind, meta)
	}
	var app *membership.Application
	if name != "" {
		app = o.Index.Get(types.NamespacedName{Namespace: object.Namespace, Name: name})
	}
	if app != nil && !app.Matches(object.GroupKind, meta) {
		app = nil
	}
	if !d.marks.Empty() && o.awaits(object, app) {
		return decision{contenders: d.contenders}
	}
	d.owners, d.given = o.owners(object, app)
	d.reown = !slices.EqualFunc(d.owners, object.Owners, func(a, b metav1.OwnerReference) bool { return a.UID == b.UID })
	return d
}

// awaits reports whether an object will be given a reference as soon as that is recorded. Its marks
// wait for that, so that both take one write.
func (o *Owners) awaits(object *tracker.Object, app *membership.Application) bool {
	return app != nil && !app.Deleting && app.Ownership == v1alpha1.OwnershipOwn &&
		object.Controller() == nil && !o.gives(app, object.GroupKind)
}

// contenders returns the Applications that match an object which is not marked as belonging to one;
// nil if there are fewer than two.
func (o *Owners) contenders(kind schema.GroupKind, object metav1.Object) []types.NamespacedName {
	var keys []types.NamespacedName
	for _, app := range o.Index.Candidates(kind, object) {
		if !app.Deleting {
			keys = append(keys, app.Key)
		}
	}
	if len(keys) < 2 {
		return nil
	}
	return keys
}

// owners returns the references that an object is to have as a component of app, or of no
// Application if app is nil: it keeps those of others, and adds or removes ours. given is app if a
// reference to it is added.
func (o *Owners) owners(object *tracker.Object, app *membership.Application) (owners []metav1.OwnerReference, given *membership.Application) {
	gives := app != nil && !app.Deleting && app.Ownership == v1alpha1.OwnershipOwn &&
		object.Controller() == nil && o.gives(app, object.GroupKind)
	for _, reference := range object.Owners {
		switch {
		case !isOurs(reference):
		case app != nil && reference.UID == app.UID && app.Ownership == v1alpha1.OwnershipOwn:
			gives = false // it has it already
		case o.byUID(reference.UID) != nil:
			continue // to an Application of which it is not a component, or that does not own
		case gives && reference.Name == app.Key.Name:
			continue // to a former Application of this name
		}
		owners = append(owners, reference)
	}
	if !gives {
		return owners, nil
	}
	return append(owners, metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ApplicationKind,
		Name: app.Key.Name, UID: app.UID,
		Controller: ptr.To(false), BlockOwnerDeletion: ptr.To(false), // deleting the Application does not wait for it
	}), app
}

// isOurs reports whether a reference is of the kind that this package writes.
func isOurs(r metav1.OwnerReference) bool {
	return IsApplication(r) && (r.Controller == nil || !*r.Controller)
}

// IsApplication reports whether a reference is to an Application, of any version.
func IsApplication(r metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	return err == nil && gv.Group == v1alpha1.Group && r.Kind == v1alpha1.ApplicationKind
}

// IsHealthCheck reports whether an object is the Pod of a health check, which is not a component,
// whatever labels it has.
func IsHealthCheck(object *tracker.Object) bool {
	_, labelled := object.Labels[v1alpha1.HealthCheckLabel]
	return labelled && object.GroupKind == schema.GroupKind{Kind: "Pod"}
}

// patch returns the JSON merge patch that implements a decision. The API server rejects it if the
// object has changed since the decision was made.
func (d decision) patch(object *tracker.Object) ([]byte, error) {
	metadata := map[string]any{"uid": object.UID, "resourceVersion": object.Version}
	if len(d.marks.Annotations) > 0 {
		metadata["annotations"] = maps.Clone(d.marks.Annotations)
	}
	if len(d.marks.Labels) > 0 {
		metadata["labels"] = maps.Clone(d.marks.Labels)
	}
	if d.reown {
		metadata["ownerReferences"] = d.owners
	}
	return json.Marshal(map[string]any{"metadata": metadata})
}
