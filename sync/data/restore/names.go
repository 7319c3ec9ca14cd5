package restore

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
)

// object is one object while rules are applied to it.
type object struct {
	*unstructured.Unstructured

	// definition is the object as it is stored in the snapshot. It is not changed.
	definition *unstructured.Unstructured
	// was is the object in the snapshot.
	was manifest.ID
	// labels are those in the snapshot.
	labels labels.Set
	// name is the name that it is going to have, and by says what gave it that name; nil as long as
	// it keeps its own.
	name string
	by   fmt.Stringer
}

func newObject(definition *unstructured.Unstructured) *object {
	clean := Clean(definition)
	Detach(clean)
	return &object{
		Unstructured: clean, definition: definition, was: manifest.Object{Unstructured: definition}.ID(), labels: definition.GetLabels(), name: definition.GetName(),
	}
}

// String returns the object as it is in the snapshot.
func (o *object) String() string { return o.was.String() }

func (o *object) is(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Group: o.was.Group, Kind: o.was.Kind}
}

func (o *object) isClaim() bool { return o.is(claimKind) }

var (
	claimKind        = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	applicationKind  = schema.GroupKind{Group: v1alpha1.Group, Kind: v1alpha1.ApplicationKind}
	secretKind       = schema.GroupKind{Kind: "Secret"}
	installationKind = schema.GroupKind{Group: v1alpha1.Group, Kind: v1alpha1.ApplicationInstallationKind}
	statefulSetKind  = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
)

// rename applies a rule of type Name to the name of an object.
func (r *rule) rename(o *object) error {
	name, hit, err := r.replace(o.name)
	if err == nil && hit {
		o.name, o.by = name, r
	}
	return err
}

// field is what names an object beside rules.
type field string

func (f field) String() string { return string(f) }

// nameClaims names the claims of StatefulSets as these are going to look for them.
func nameClaims(objects []*object) {
	claims := map[string]*object{}
	for _, o := range objects {
		if o.isClaim() {
			claims[o.was.Name] = o
		}
	}
	for _, set := range objects {
		if !set.is(statefulSetKind) {
			continue
		}
		for _, template := range claimTemplates(set.Unstructured) {
			name, _, _ := unstructured.NestedString(template, "metadata", "name")
			prefix := name + "-" + set.was.Name + "-"
			for was, claim := range claims {
				if ordinal, ok := strings.CutPrefix(was, prefix); ok && isOrdinal(ordinal) {
					claim.name, claim.by = name+"-"+set.name+"-"+ordinal, set.by
				}
			}
		}
	}
}

func isOrdinal(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == "" && (text == "0" || text[0] != '0')
}

// checkNames returns an error if an object has a name that it cannot have, or one that another has.
func checkNames(objects []*object) error {
	taken := map[manifest.ID]*object{}
	for _, o := range objects {
		if fault := invalidName(o); fault != "" && o.name != o.was.Name {
			return fmt.Errorf("%s: %s would be named %q, which is not valid: %s", o.by, o, o.name, fault)
		}
		id := manifest.ID{Group: o.was.Group, Kind: o.was.Kind, Name: o.name}
		if other := taken[id]; other != nil {
			by := o.by
			if by == nil {
				by = other.by
			}
			if by == nil {
				return fmt.Errorf("the snapshot holds %s twice", o)
			}
			return fmt.Errorf("%s: %s and %s would both be named %q", by, other, o, o.name)
		}
		taken[id] = o
	}
	return nil
}

// invalidName returns why an object cannot have its name, as far as that depends on its kind in
// Kubernetes itself; the API server says the rest.
func invalidName(o *object) string {
	var faults []string
	switch {
	case o.was.Group == "rbac.authorization.k8s.io":
		faults = content.IsPathSegmentName(o.name)
	case o.was.Group == "" && o.was.Kind == "Service":
		faults = validation.IsDNS1035Label(o.name)
	default:
		faults = validation.IsDNS1123Subdomain(o.name)
	}
	if len(faults) == 0 {
		return ""
	}
	return faults[0]
}
