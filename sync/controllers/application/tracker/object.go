package tracker

import (
	"maps"
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Ref names an object of any kind.
type Ref struct {
	schema.GroupKind
	types.NamespacedName
}

// String returns `<kind>.<group> <namespace>/<name>`.
func (r Ref) String() string { return r.GroupKind.String() + " " + r.NamespacedName.String() }

// Object is what is kept of an object. It is immutable, so it may be shared.
type Object struct {
	Ref
	UID     types.UID
	Version string // resourceVersion
	Labels  map[string]string
	// Annotations holds those of Options.Annotations that the object has; nil if it has none.
	Annotations map[string]string
	Owners      []metav1.OwnerReference
	// Deleting: the object has a deletionTimestamp.
	Deleting bool
}

// GetObjectMeta returns the metadata that is known.
func (o *Object) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.Version,
		Labels: o.Labels, Annotations: o.Annotations, OwnerReferences: o.Owners,
	}
}

// Controller returns the reference to the controller of the object, or nil if it has none.
func (o *Object) Controller() *metav1.OwnerReference {
	for i := range o.Owners {
		if c := o.Owners[i].Controller; c != nil && *c {
			return &o.Owners[i]
		}
	}
	return nil
}

// Alike reports whether two states of an object differ in nothing but their version.
func (o *Object) Alike(other *Object) bool {
	return o.UID == other.UID && o.Deleting == other.Deleting &&
		maps.Equal(o.Labels, other.Labels) && maps.Equal(o.Annotations, other.Annotations) &&
		slices.EqualFunc(o.Owners, other.Owners, sameReference)
}

func sameReference(a, b metav1.OwnerReference) bool {
	return a.UID == b.UID && a.Name == b.Name && a.Kind == b.Kind && a.APIVersion == b.APIVersion &&
		same(a.Controller, b.Controller) && same(a.BlockOwnerDeletion, b.BlockOwnerDeletion)
}

func same(a, b *bool) bool { return a == b || a != nil && b != nil && *a == *b }

// reduce returns what is kept of an object.
func (k *kind) reduce(in metav1.Object) *Object {
	o := &Object{
		Ref:      Ref{k.gk, types.NamespacedName{Namespace: shared(in.GetNamespace()), Name: in.GetName()}},
		UID:      in.GetUID(),
		Version:  in.GetResourceVersion(),
		Deleting: in.GetDeletionTimestamp() != nil,
	}
	if labels := in.GetLabels(); len(labels) > 0 {
		o.Labels = make(map[string]string, len(labels))
		for key, value := range labels {
			o.Labels[shared(key)] = shared(value)
		}
	}
	annotations := in.GetAnnotations()
	for _, key := range k.tracker.options.Annotations {
		if value, found := annotations[key]; found {
			if o.Annotations == nil {
				o.Annotations = make(map[string]string, 1)
			}
			o.Annotations[key] = shared(value)
		}
	}
	for _, owner := range in.GetOwnerReferences() {
		owner.APIVersion, owner.Kind, owner.Name = shared(owner.APIVersion), shared(owner.Kind), shared(owner.Name)
		owner.Controller, owner.BlockOwnerDeletion = sharedBool(owner.Controller), sharedBool(owner.BlockOwnerDeletion)
		o.Owners = append(o.Owners, owner)
	}
	o.Owners = slices.Clip(o.Owners)
	return o
}

// shared returns a copy of a string that many objects have: one for all that are reduced between two
// garbage collections, because the handle is not kept. That halves the memory of what comes by a list;
// an object that is updated later has copies of its own.
func shared(s string) string { return unique.Make(s).Value() }

var yes, no = true, false

func sharedBool(b *bool) *bool {
	switch {
	case b == nil:
		return nil
	case *b:
		return &yes
	default:
		return &no
	}
}
