package membership

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"waybill.dev/waybill/api/v1alpha1"
)

// Application is an Application prepared for membership queries. It is immutable and can be shared.
type Application struct {
	// Key of the Application.
	Key types.NamespacedName

	// UID distinguishes this Application from others of the same name.
	UID types.UID

	// Ownership of its components; Own if the spec sets none.
	Ownership v1alpha1.Ownership

	// Dependencies are the names of other Applications in its namespace. Read-only.
	Dependencies []string

	// Deleting is true if the Application is being deleted: it gets no new members.
	Deleting bool

	selector labels.Selector
	kinds    map[schema.GroupKind]listing
}

// listing holds the components of one kind that an Application lists.
type listing struct {
	every bool // a component without a name: every object of the kind
	names sets.Set[string]
}

var applicationKind = v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationKind).GroupKind()

// Compile prepares an Application. It fails if the selector is missing or invalid, which admission
// refuses. It retains nothing of app but strings.
func Compile(app *v1alpha1.Application) (*Application, error) {
	if app.Spec.Selector == nil {
		return nil, errors.New("compile selector: it is missing")
	}
	selector, err := metav1.LabelSelectorAsSelector(app.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("compile selector: %w", err)
	}
	a := &Application{
		Key:          types.NamespacedName{Namespace: app.Namespace, Name: app.Name},
		UID:          app.UID,
		Ownership:    app.Spec.Ownership,
		Dependencies: append([]string(nil), app.Spec.Dependencies...),
		Deleting:     app.DeletionTimestamp != nil,
		selector:     selector,
		kinds:        make(map[schema.GroupKind]listing),
	}
	if a.Ownership == "" {
		a.Ownership = v1alpha1.OwnershipOwn
	}
	for _, c := range app.Spec.Components {
		gk := schema.GroupKind{Group: c.Group, Kind: c.Kind}
		l, ok := a.kinds[gk]
		if !ok {
			l.names = sets.New[string]()
		}
		if c.Name == "" {
			l.every = true
		} else {
			l.names.Insert(c.Name)
		}
		a.kinds[gk] = l
	}
	return a, nil
}

// Lists reports whether spec.components lists the object: by its name, or with a component without
// a name, which stands for every object of the kind. An Application never lists itself.
func (a *Application) Lists(gk schema.GroupKind, name string) bool {
	l, ok := a.kinds[gk]
	if !ok || (gk == applicationKind && name == a.Key.Name) {
		return false
	}
	return l.every || l.names.Has(name)
}

// ListsKind reports whether any component is of the kind.
func (a *Application) ListsKind(gk schema.GroupKind) bool {
	_, ok := a.kinds[gk]
	return ok
}

// Matches reports whether the Application lists the object and its selector matches the object's
// labels. It does not check that the object is in the Application's namespace.
func (a *Application) Matches(gk schema.GroupKind, obj metav1.Object) bool {
	return a.Lists(gk, obj.GetName()) && a.Selects(obj.GetLabels())
}

// Selects reports whether the selector matches labels.
func (a *Application) Selects(set map[string]string) bool {
	return a.selector.Matches(labels.Set(set))
}

// pair is a label with its value.
type pair struct{ key, value string }

// required returns, for each label that must have one of several values, the pairs of which an
// object must carry one. They are sorted by key.
func (a *Application) required() [][]pair {
	requirements, _ := a.selector.Requirements()
	var alternatives [][]pair
	for _, r := range requirements {
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
		default:
			continue
		}
		var pairs []pair
		for _, value := range r.ValuesUnsorted() {
			pairs = append(pairs, pair{r.Key(), value})
		}
		alternatives = append(alternatives, pairs)
	}
	return alternatives
}
