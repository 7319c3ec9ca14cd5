package membership

import (
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

// Marks are the changes to make to an object: keys with their new value, or nil to remove one. The
// only keys are ApplicationAnnotation, InjectedAnnotation and PartOfLabel.
type Marks struct {
	Annotations map[string]*string
	Labels      map[string]*string

	// Warnings are for the user who writes the object. They do not depend on its previous state.
	Warnings []string
}

// Empty reports whether the object needs no changes.
func (m Marks) Empty() bool { return len(m.Annotations)+len(m.Labels) == 0 }

// Apply applies the changes to the object. It replaces the object's maps rather than modifying
// them.
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

// member is an object and its current marks.
type member struct {
	kind            schema.GroupKind
	namespace, name string
	labels          map[string]string

	application string // named by the annotation; also empty if there is none
	annotated   bool   // there is an annotation
	injected    string // named by our mark
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

// explicit reports whether the Application was chosen explicitly: the annotation is not as we injected it.
func (m *member) explicit() bool {
	return m.annotated && (m.application == "" || m.application != m.injected)
}

// labelIsOurs reports whether the part-of label was injected with our mark.
func (m *member) labelIsOurs() bool { return m.labelled && m.injected != "" && m.partOf == m.injected }

// Decide returns the marks to add to or remove from the object so that they name the Application
// that it belongs to.
//
// An annotation that we did not write is left alone, whatever its value; an empty one means that
// the object belongs to no Application. Otherwise, if exactly one Application matches, the object
// belongs to it; if several match, there is only a warning. An Application that we injected stays
// while it matches, even if another one starts to match as well, and is decided again when it no
// longer does. It also stays if there is no Application of that name and no other one matches: it
// was deleted, or does not exist yet. The part-of label is ours if it is absent or equals our
// mark.
//
// For an object that has its marks applied, Decide returns no changes.
func Decide(x *Index, gk schema.GroupKind, obj metav1.Object) Marks {
	m := memberOf(gk, obj)
	if m.explicit() {
		return m.keep(x)
	}
	var app *Application // named by our annotation
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
		marks.Warnings = []string{fmt.Sprintf("Applications %s all match, so it becomes part of none: set the annotation %s to choose one",
			names(candidates), v1alpha1.ApplicationAnnotation)}
		return marks
	case m.application != "" && app == nil:
		return Marks{}
	}
	return m.leave()
}

// Claims reports whether the Application matches an object for which no Application was chosen
// explicitly: Decide may assign it to the Application, even if we injected another one before.
func (a *Application) Claims(gk schema.GroupKind, obj metav1.Object) bool {
	if !a.Lists(gk, obj.GetName()) {
		return false
	}
	m := memberOf(gk, obj)
	m.dropOurLabel()
	return !m.explicit() && a.Selects(m.labels)
}

// keep leaves an explicit annotation as it is, warns if it is wrong, and removes what is left of an
// earlier injection.
func (m *member) keep(x *Index) Marks {
	marks := m.forget()
	app := x.Get(types.NamespacedName{Namespace: m.namespace, Name: m.application})
	if app == nil && m.application != "" {
		marks.Warnings = append(marks.Warnings, m.unknown(x))
	}
	if app != nil {
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

// unknown warns that there is no Application of the name in the annotation, at least not yet.
func (m *member) unknown(x *Index) string {
	name := m.application
	if len(name) > validation.DNS1123SubdomainMaxLength {
		name = strings.ToValidUTF8(name[:validation.DNS1123SubdomainMaxLength], "") + "..."
	}
	warning := fmt.Sprintf("annotation %s names Application %s, which does not exist in namespace %s: until it is created, the object belongs to no Application",
		v1alpha1.ApplicationAnnotation, name, m.namespace)
	if matching := x.candidates(m.kind, m.namespace, m.name, m.labels); len(matching) > 0 {
		warning += fmt.Sprintf("; its labels match %s: remove the annotation to follow labels", names(matching))
	}
	return warning
}

// join makes the object a member. It omits the label if that would end the membership, or if the
// name is not a valid label value.
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

// leave removes everything that was injected.
func (m *member) leave() Marks {
	marks := m.forget()
	if m.annotated {
		marks.annotate(v1alpha1.ApplicationAnnotation, nil)
	}
	return marks
}

// forget removes everything that was injected except the annotation.
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

// dropOurLabel removes our label from the labels to match, so that what we wrote ourselves counts
// neither for nor against an Application.
func (m *member) dropOurLabel() {
	if m.labelIsOurs() {
		m.labels = merge(m.labels, map[string]*string{v1alpha1.PartOfLabel: nil})
	}
}

// maxNames is how many Applications a warning names: API servers truncate long warnings.
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
