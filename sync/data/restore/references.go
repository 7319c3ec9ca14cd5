package restore

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/api/v1alpha1"
)

// references changes whatever refers to objects of a snapshot, so that it refers to those that are
// made from them.
type references struct {
	objects  []*object
	from, to string // namespaces
}

// follow changes all references. What they refer to is found by the names and the namespace in the
// snapshot, so that it is found even if one object takes the name of another.
func (r references) follow() error {
	var changes []func()
	for _, o := range r.objects {
		changes = append(changes, r.typed(o)...)
	}
	// What names a kind is certain, and so it outranks what fields mean to kustomize.
	if err := r.untyped(); err != nil {
		return err
	}
	for _, change := range changes {
		change()
	}
	return nil
}

// typed returns the changes of references that name a kind, or a namespace: those of any kind of
// object, custom ones included.
func (r references) typed(o *object) []func() {
	var changes []func()
	set := func(ref map[string]any, field, value string) {
		changes = append(changes, func() { ref[field] = value }) // kustomize may have changed it, too
	}
	_ = each(o.Object, func(ref map[string]any) error { // visit returns no error
		name, _ := ref["name"].(string)
		kind, _ := ref["kind"].(string)
		namespace, named := ref["namespace"].(string)
		if name == "" || named && namespace != r.from || kind == "" && !named {
			return nil
		}
		target := r.find(kind, ref, name)
		if target != nil {
			set(ref, "name", target.name)
		}
		if named && (target != nil || o.was.Kind == "RoleBinding") {
			set(ref, "namespace", r.to)
		}
		return nil
	})
	return append(changes, r.users(o)...)
}

// find returns what a reference refers to; nil if that does not belong to the application, or is not
// certain.
func (r references) find(kind string, ref map[string]any, name string) *object {
	group, grouped := groupOf(ref)
	var found *object
	for _, o := range r.objects {
		if o.was.Name != name || kind != "" && o.was.Kind != kind || kind != "" && grouped && o.was.Group != group {
			continue
		}
		if found != nil && found.name != o.name {
			return nil
		}
		found = o
	}
	return found
}

// groupOf returns the group that a reference names, and whether it names one. A reference without one
// may mean any.
func groupOf(ref map[string]any) (string, bool) {
	for _, field := range []string{"apiGroup", "group"} {
		if group, ok := ref[field].(string); ok {
			return group, true
		}
	}
	if version, ok := ref["apiVersion"].(string); ok {
		parsed, err := schema.ParseGroupVersion(version)
		return parsed.Group, err == nil
	}
	return "", false
}

// users returns the changes of a RoleBinding's subjects that are ServiceAccounts under the names that
// they have as users and groups, and of the namespace in namespaceSelectors.
func (r references) users(o *object) []func() {
	if r.from == r.to {
		return nil
	}
	var changes []func()
	subjects, _ := o.Object["subjects"].([]any)
	for _, item := range subjects {
		subject, _ := item.(map[string]any)
		name, _ := subject["name"].(string)
		switch {
		case subject["kind"] == "Group" && name == "system:serviceaccounts:"+r.from:
			changes = append(changes, func() { subject["name"] = "system:serviceaccounts:" + r.to })
		case subject["kind"] == "User" && strings.HasPrefix(name, "system:serviceaccount:"+r.from+":"):
			account := strings.TrimPrefix(name, "system:serviceaccount:"+r.from+":")
			if target := r.find("ServiceAccount", nil, account); target != nil {
				account = target.name
			}
			changes = append(changes, func() { subject["name"] = "system:serviceaccount:" + r.to + ":" + account })
		}
	}
	return append(changes, r.selectors(o)...)
}

// selectors returns the changes of namespaceSelectors that select the namespace by its name.
func (r references) selectors(o *object) []func() {
	const label = "kubernetes.io/metadata.name"
	var changes []func()
	_ = each(o.Object, func(object map[string]any) error {
		selector, _ := object["namespaceSelector"].(map[string]any)
		if labels, _ := selector["matchLabels"].(map[string]any); labels[label] == r.from {
			changes = append(changes, func() { labels[label] = r.to })
		}
		list, _ := selector["matchExpressions"].([]any)
		for _, item := range list {
			expression, _ := item.(map[string]any)
			values, _ := expression["values"].([]any)
			for i, value := range values {
				if expression["key"] == label && value == r.from {
					changes = append(changes, func() { values[i] = r.to })
				}
			}
		}
		return nil
	})
	return changes
}

// applications changes the annotation by which an object names its Application.
func (r references) applications() {
	for _, o := range r.objects {
		annotations := o.GetAnnotations()
		name, ok := annotations[v1alpha1.ApplicationAnnotation]
		if target := r.find(v1alpha1.ApplicationKind, map[string]any{"group": v1alpha1.Group}, name); ok && target != nil {
			annotations[v1alpha1.ApplicationAnnotation] = target.name
			o.SetAnnotations(annotations)
		}
	}
}
