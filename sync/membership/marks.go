package membership

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"waybill.dev/waybill/api/v1alpha1"
)

// Marks are what has to change on an object: keys with their new value, nil to remove one. They
// only ever name ApplicationAnnotation, InjectedAnnotation and PartOfLabel.
type Marks struct {
	Annotations map[string]*string
	Labels      map[string]*string

	// Warnings are for whoever writes the object. They do not depend on what was there before.
	Warnings []string
}

// Empty says whether the object may stay as it is.
func (m Marks) Empty() bool { return len(m.Annotations)+len(m.Labels) == 0 }

// Apply changes the object, whose maps are replaced, not written to.
func (m Marks) Apply(obj metav1.Object) {
	if len(m.Annotations) > 0 {
		obj.SetAnnotations(merge(obj.GetAnnotations(), m.Annotations))
	}
	if len(m.Labels) > 0 {
		obj.SetLabels(merge(obj.GetLabels(), m.Labels))
	}
}

func merge(values map[string]string, changes map[string]*string) map[string]string {
	merged := maps.Clone(values)
	if merged == nil {
		merged = map[string]string{}
	}
	for key, value := range changes {
		if value == nil {
			delete(merged, key)
		} else {
			merged[key] = *value
		}
	}
	return merged
}

// MergePatch is a JSON merge patch (RFC 7386) of an object that says the same. With a uid, API
// servers refuse it where the object has been replaced by another one of its name.
func (m Marks) MergePatch(uid types.UID) ([]byte, error) {
	metadata := map[string]any{}
	if uid != "" {
		metadata["uid"] = uid
	}
	if len(m.Annotations) > 0 {
		metadata["annotations"] = m.Annotations
	}
	if len(m.Labels) > 0 {
		metadata["labels"] = m.Labels
	}
	return json.Marshal(map[string]any{"metadata": metadata})
}

func (m *Marks) annotate(key string, value *string) {
	if m.Annotations == nil {
		m.Annotations = map[string]*string{}
	}
	m.Annotations[key] = value
}

func (m *Marks) label(key string, value *string) {
	if m.Labels == nil {
		m.Labels = map[string]*string{}
	}
	m.Labels[key] = value
}

// member is an object, and what its marks say.
type member struct {
	kind            schema.GroupKind
	namespace, name string
	labels          map[string]string

	application string // what the annotation names; empty also where there is none
	annotated   bool   // there is an annotation
	injected    string // what our mark names
	partOf      string
	labelled    bool // there is a part-of label
}

func memberOf(gk schema.GroupKind, obj metav1.Object) *member {
	m := &member{kind: gk, namespace: obj.GetNamespace(), name: obj.GetName(), labels: obj.GetLabels()}
	m.application, m.annotated = obj.GetAnnotations()[v1alpha1.ApplicationAnnotation], has(obj.GetAnnotations(), v1alpha1.ApplicationAnnotation)
	m.injected = obj.GetAnnotations()[v1alpha1.InjectedAnnotation]
	m.partOf, m.labelled = m.labels[v1alpha1.PartOfLabel], has(m.labels, v1alpha1.PartOfLabel)
	return m
}

func has(values map[string]string, key string) bool {
	_, ok := values[key]
	return ok
}

// explicit says that somebody else than us chose the Application (C52).
func (m *member) explicit() bool {
	return m.annotated && (m.application == "" || m.application != m.injected)
}

// labelIsOurs says that the part-of label came with our mark.
func (m *member) labelIsOurs() bool { return m.labelled && m.injected != "" && m.partOf == m.injected }

// Decide says which marks the object must get or lose so that they say whose it is (C3, C52).
//
// An annotation that does not come from us is left alone, whatever it says; empty, it says that
// the object belongs to none. Else exactly one Application that matches makes the object its
// own; several make nothing but a warning. What we injected stays while it matches, also when
// another one comes to match as well, and is worked out anew when it does not. It also stays
// where there is no Application of that name, and no other that matches: it was deleted, or is
// not there yet (A55). The part-of label is ours where it is absent, or says what our mark says.
//
// Decide on an object that has its marks applied is empty.
func Decide(x *Index, gk schema.GroupKind, obj metav1.Object) Marks {
	m := memberOf(gk, obj)
	if m.explicit() {
		return m.keep(x)
	}
	var app *Application // that our annotation names
	if m.application != "" {
		app = x.Get(types.NamespacedName{Namespace: m.namespace, Name: m.application})
	}
	if app != nil && app.Lists(gk, m.name) && app.Selects(m.labels) {
		return m.join(app)
	}
	m.dropOurLabel()
	candidates := slices.DeleteFunc(x.candidates(gk, m.namespace, m.name, m.labels), func(a *Application) bool { return a.Deleting })
	switch {
	case len(candidates) == 1:
		return m.join(candidates[0])
	case len(candidates) > 1:
		marks := m.leave()
		marks.Warnings = []string{fmt.Sprintf("Applications %s all match: it is made part of none; annotation %s says of which",
			names(candidates), v1alpha1.ApplicationAnnotation)}
		return marks
	case m.application != "" && app == nil:
		return Marks{}
	}
	return m.leave()
}

// Claims says whether the Application matches an object that nobody has chosen one for (C52): Decide
// may make it the Application's own, also where it was injected that it is another one's.
func (a *Application) Claims(gk schema.GroupKind, obj metav1.Object) bool {
	if !a.Lists(gk, obj.GetName()) {
		return false
	}
	m := memberOf(gk, obj)
	m.dropOurLabel()
	return !m.explicit() && a.Selects(m.labels)
}

// keep leaves an explicit annotation as it is, says where it is wrong, and takes back what of
// an earlier injection is left.
func (m *member) keep(x *Index) Marks {
	marks := m.forget()
	if app := x.Get(types.NamespacedName{Namespace: m.namespace, Name: m.application}); app != nil {
		switch {
		case m.name == "" && app.ListsKind(m.kind): // its name is still to be generated
		case !app.Lists(m.kind, m.name):
			marks.Warnings = append(marks.Warnings, fmt.Sprintf("annotation %s names Application %s, which does not list it in spec.components",
				v1alpha1.ApplicationAnnotation, app.Key.Name))
		}
		if !app.Selects(m.labels) {
			marks.Warnings = append(marks.Warnings, fmt.Sprintf("annotation %s names Application %s, whose selector %q does not match its labels: it is orphaned",
				v1alpha1.ApplicationAnnotation, app.Key.Name, app.selector.String()))
		}
	}
	return marks
}

// join makes the object a member. The label is left out where it would end that, or cannot hold
// the name.
func (m *member) join(app *Application) Marks {
	var marks Marks
	name := app.Key.Name
	if m.application != name {
		marks.annotate(v1alpha1.ApplicationAnnotation, &name)
	}
	if m.injected != name {
		marks.annotate(v1alpha1.InjectedAnnotation, &name)
	}
	if m.labelled && !m.labelIsOurs() {
		return marks
	}
	with := merge(m.labels, map[string]*string{v1alpha1.PartOfLabel: &name})
	fits := len(validation.IsValidLabelValue(name)) == 0 && app.Selects(with)
	switch {
	case fits && m.partOf != name:
		marks.label(v1alpha1.PartOfLabel, &name)
	case !fits && m.labelled:
		marks.label(v1alpha1.PartOfLabel, nil)
	}
	return marks
}

// leave takes back everything that was injected.
func (m *member) leave() Marks {
	marks := m.forget()
	if m.annotated {
		marks.annotate(v1alpha1.ApplicationAnnotation, nil)
	}
	return marks
}

// forget takes back everything that was injected but the annotation.
func (m *member) forget() Marks {
	var marks Marks
	if m.injected != "" {
		marks.annotate(v1alpha1.InjectedAnnotation, nil)
	}
	if m.labelIsOurs() {
		marks.label(v1alpha1.PartOfLabel, nil)
	}
	return marks
}

// dropOurLabel makes questions from now on be about the labels that are not ours, so that what
// we wrote ourselves does not speak for or against an Application.
func (m *member) dropOurLabel() {
	if m.labelIsOurs() {
		m.labels = merge(m.labels, map[string]*string{v1alpha1.PartOfLabel: nil})
	}
}

// maxNames is how many Applications a warning names: API servers cut long ones.
const maxNames = 10

func names(apps []*Application) string {
	var list []string
	for _, a := range apps {
		if len(list) == maxNames {
			list = append(list, fmt.Sprintf("and %d more", len(apps)-maxNames))
			break
		}
		list = append(list, a.Key.Name)
	}
	return strings.Join(list, ", ")
}
