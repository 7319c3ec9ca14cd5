package manifest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is one manifest and the place it came from.
type Object struct {
	*unstructured.Unstructured

	// File is the slash-separated path relative to the root of the source; empty if the object was
	// not read from a file.
	File string
	// Line is the 1-based line of File at which the document starts; 0 if it is not known, for
	// example after a kustomize build.
	Line int
	// Kustomization is the folder of the kustomization that built the object; empty if none did.
	Kustomization string
}

// ID returns the identity of the object. The namespace is the one in the manifest: whether the kind
// is namespaced at all is not known here.
func (o Object) ID() ID {
	gvk := o.GroupVersionKind()
	return ID{
		Group:     gvk.Group,
		Version:   gvk.Version,
		Kind:      gvk.Kind,
		Namespace: o.GetNamespace(),
		Name:      o.GetName(),
	}
}

// SetLabel sets one label, and keeps the others.
func (o Object) SetLabel(key, value string) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	o.SetLabels(labels)
}

// Place returns `file:line`, or the part of it that is known.
func (o Object) Place() string {
	return place(o.File, o.Line)
}

// ID identifies an object in one cluster. It is comparable, so it can be a map
// key; use Key for that when two versions of a kind must count as one object.
type ID struct {
	Group, Version, Kind, Namespace, Name string
}

// Key returns the identity without the version: apps/v1 and apps/v1beta1 of one
// Deployment are the same object.
func (id ID) Key() ID {
	id.Version = ""
	return id
}

// IsZero reports whether nothing is known about the object.
func (id ID) IsZero() bool {
	return id == ID{}
}

// GroupVersionKind returns the type of the object.
func (id ID) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: id.Group, Version: id.Version, Kind: id.Kind}
}

// String returns the identity as users read it, `Deployment.apps default/web`, without parts that
// are empty. It does not include the version.
func (id ID) String() string {
	s := id.Kind
	if id.Group != "" {
		s += "." + id.Group
	}
	name := id.Name
	if id.Namespace != "" {
		name = id.Namespace + "/" + name
	}
	if s != "" && name != "" {
		s += " "
	}
	return s + name
}
