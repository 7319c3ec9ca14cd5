package restore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/snapshot/contents"
	"waybill.dev/waybill/sync/deliver/apply"
)

// maxInstallationName is the limit of Helm, and of the API.
const maxInstallationName = 53

// installation is the ApplicationInstallation that manages the application, and is made again: it renders
// most of the objects anew.
type installation struct {
	*object
	delivery contents.Delivery
	// owner is what its objects in the snapshot are marked with.
	owner apply.Owner
}

// findInstallation returns the installation that manages the application of a snapshot; nil if there is
// none, or not just one.
func findInstallation(definitions []*unstructured.Unstructured) *installation {
	var found *installation
	for _, definition := range definitions {
		if definition.GroupVersionKind().GroupKind() != installationKind {
			continue
		}
		delivery, ok := contents.DeliveryOf(definition)
		if !ok || delivery.Version == "" || delivery.Namespace != definition.GetNamespace() {
			continue
		}
		if found != nil {
			return nil
		}
		found = &installation{object: newObject(definition), delivery: delivery, owner: apply.Owner{
			Kind: v1alpha1.ApplicationInstallationKind, Namespace: definition.GetNamespace(), Name: definition.GetName(),
		}}
	}
	return found
}

// MayInstall reports whether who restores a content, or rolls back to it, was asked whether they may install
// what is in it: they were if it lists installations, which it does also for sources of values, or nothing, as
// one that was written by hand.
func MayInstall(content *v1alpha1.ApplicationSnapshotContent) bool {
	kinds := content.Status.Kinds
	return len(kinds) == 0 || slices.Contains(kinds, "applicationinstallations."+v1alpha1.Group)
}

// Installed returns the name of the ApplicationDefinition whose installation is made of the definitions of a
// snapshot; empty if none is.
func Installed(definitions []*unstructured.Unstructured) string {
	found := findInstallation(definitions)
	if found == nil {
		return ""
	}
	name, _, _ := unstructured.NestedString(found.Object, "spec", "applicationRef", "name")
	return name
}

// renders reports whether an object of the snapshot was of the installation.
func (i *installation) renders(definition *unstructured.Unstructured) bool {
	if i == nil {
		return false
	}
	owner, ok := apply.OwnerOf(definition)
	if ok && owner.Kind == i.owner.Kind && owner.ObjectKey() == i.owner.ObjectKey() {
		i.owner.HubID = owner.HubID
		return true
	}
	return false
}

// keeps reports whether an object that the installation renders is made beforehand all the same, for the
// installation to take over: because of the data in a claim, or of what a chart has generated and looks up.
func (i *installation) keeps(o *object) bool {
	return o.isClaim() || o.is(secretKind) && i.delivery.Method == v1alpha1.MethodHelm
}

// refuse returns an error if a rule has changed an object that the installation renders anew.
func (r *rule) refuse(o *object, i *installation) error {
	switch r.Type {
	case v1alpha1.SubstitutionAnnotation, v1alpha1.SubstitutionEnvVar:
		return fmt.Errorf("%s: type %s cannot change %s, which %s renders: change what it is rendered from with a rule of type %s, or select other objects with selector",
			r, r.Type, o, i, v1alpha1.SubstitutionValue)
	default: // the chart names and labels its objects after the installation
		return nil
	}
}

// nameAfter gives the installation its name: it makes an Application of that name.
func (i *installation) nameAfter(o Options, application *object) error {
	if i.renders(application.definition) {
		i.name, i.by = o.Application, field("spec.applicationName")
	} else if i.name == o.Application {
		return fmt.Errorf("spec.applicationName: %s makes an Application of its own name %q, which is that of the restored one: rename the installation by a rule of type Name", i, i.name)
	}
	if len(i.name) > maxInstallationName {
		return fmt.Errorf("%s: %s cannot be named %q: at most %d characters", i.by, i, i.name, maxInstallationName)
	}
	return nil
}

// settle has the spec of the installation say what is to be installed, in which namespace.
func (i *installation) settle(o Options, refs references, rules []*rule) error {
	spec, ok := i.Object["spec"].(map[string]any)
	if !ok {
		return fmt.Errorf("%s has no spec", i)
	}
	if err := unstructured.SetNestedField(spec, i.delivery.Version, "applicationRef", "version"); err != nil {
		return fmt.Errorf("%s: spec.applicationRef: %w", i, err)
	}
	spec["namespace"] = map[string]any{"name": o.Namespace}
	i.keepSources(spec, refs)
	i.keepDependencies(spec, o.Namespace)
	if account, _ := spec["serviceAccountName"].(string); account != "" {
		if target := refs.find("ServiceAccount", nil, account); target != nil {
			spec["serviceAccountName"] = target.name
		}
	}
	return i.substitute(spec, refs, rules)
}

// keepSources leaves out sources of values that the snapshot does not hold: what has their names in the
// namespace is something else.
func (i *installation) keepSources(spec map[string]any, refs references) {
	list, _ := spec["valuesFrom"].([]any)
	list = slices.DeleteFunc(list, func(item any) bool {
		source, _ := item.(map[string]any)
		kind, _ := source["kind"].(string)
		name, _ := source["name"].(string)
		return !slices.ContainsFunc(refs.objects, func(o *object) bool { return o.was.Kind == kind && o.was.Group == "" && o.name == name })
	})
	if spec["valuesFrom"] = list; len(list) == 0 {
		delete(spec, "valuesFrom")
	}
}

// keepDependencies leaves out installations that the copy is not beside.
func (i *installation) keepDependencies(spec map[string]any, namespace string) {
	list, _ := spec["dependsOn"].([]any)
	list = slices.DeleteFunc(list, func(item any) bool {
		dependency, _ := item.(map[string]any)
		of, _ := dependency["namespace"].(string)
		return namespace != i.was.Namespace || of != "" && of != namespace
	})
	if spec["dependsOn"] = list; len(list) == 0 {
		delete(spec, "dependsOn")
	}
}

// substitute applies the rules for values. Values that name an object which was renamed follow it.
func (i *installation) substitute(spec map[string]any, refs references, rules []*rule) error {
	values, err := i.values(spec)
	if err != nil || values == nil {
		return err
	}
	before := fmt.Sprint(values)
	follow(values, refs)
	for _, r := range rules {
		if r.Type == v1alpha1.SubstitutionValue && r.selector.Matches(i.labels) {
			if err := r.values(values, ""); err != nil {
				return err
			}
		}
	}
	if fmt.Sprint(values) != before { // otherwise a block keeps its comments
		delete(spec, "valuesBlock")
		spec["values"] = values
	}
	return nil
}

// values returns the values of the installation, which are at one of two places.
func (i *installation) values(spec map[string]any) (map[string]any, error) {
	block, ok := spec["valuesBlock"].(string)
	if !ok {
		values, _ := spec["values"].(map[string]any)
		return values, nil
	}
	if err := expansion.Text([]byte(block), expansion.Limits{}); err != nil {
		return nil, fmt.Errorf("%s: spec.valuesBlock: %w", i, err)
	}
	var values map[string]any
	if err := yaml.Unmarshal([]byte(block), &values); err != nil {
		return nil, fmt.Errorf("%s: spec.valuesBlock is not valid YAML", i) // an error may quote it
	}
	return values, nil
}

// values applies a rule of type Value to text below a value, which is at a path.
func (r *rule) values(value any, path string) error {
	switch value := value.(type) {
	case []any:
		for n, item := range value {
			replaced, removed, err := r.value(item, path)
			if err != nil {
				return err
			}
			if value[n] = replaced; removed {
				return fmt.Errorf("%s: newValue is empty, and an item of the list %s of values cannot be removed", r, path)
			}
		}
	case map[string]any:
		for _, key := range sorted(value) {
			replaced, removed, err := r.value(value[key], strings.TrimPrefix(path+"."+key, "."))
			if err != nil {
				return err
			}
			if value[key] = replaced; removed {
				delete(value, key)
			}
		}
	}
	return nil
}

func (r *rule) value(value any, path string) (replaced any, removed bool, err error) {
	text, ok := value.(string)
	if !ok {
		return value, false, r.values(value, path)
	}
	if !r.concerns(path) {
		return value, false, nil
	}
	after, hit, err := r.replace(text)
	return after, hit && r.removes(), err
}

// named are the kinds that values of charts name, by what is in the keys of such values: existingSecret,
// claimName, existingConfigmap.
var named = map[string]schema.GroupKind{
	"secret": secretKind, "claim": claimKind, "configmap": {Kind: "ConfigMap"},
}

// follow has values that name an object of the application follow its new name, where the key says which kind
// it is of.
func follow(value any, refs references) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			follow(item, refs)
		}
	case map[string]any:
		for key, item := range value {
			if name, ok := item.(string); ok {
				value[key] = refs.following(key, name)
				continue
			}
			follow(item, refs)
		}
	}
}

func (r references) following(key, name string) string {
	for _, word := range slices.Sorted(maps.Keys(named)) {
		if !strings.Contains(strings.ToLower(key), word) {
			continue
		}
		for _, o := range r.objects {
			if o.is(named[word]) && o.was.Name == name {
				return o.name
			}
		}
	}
	return name
}

// mark marks an object that is made beforehand as one that the installation may take over.
func (i *installation) mark(o *object, namespace string) {
	owner := apply.Owner{HubID: i.owner.HubID, Kind: i.owner.Kind, Namespace: namespace, Name: i.name}
	labels, annotations := o.GetLabels(), o.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[v1alpha1.OwnerHashLabel], labels[v1alpha1.ReleaseLabel] = owner.Hash(), i.name
	annotations[v1alpha1.OwnerAnnotation] = owner.String()
	if i.delivery.Method == v1alpha1.MethodHelm {
		labels["app.kubernetes.io/managed-by"] = "Helm"
		annotations["meta.helm.sh/release-name"], annotations["meta.helm.sh/release-namespace"] = i.name, namespace
	}
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
}

// expect writes down which of the claims the installation has to use, by their names in the snapshot: those
// that it used when the snapshot was taken.
func (i *installation) expect(objects []*object) {
	var rendered []*unstructured.Unstructured
	var was, is []string
	for _, o := range objects {
		if i.renders(o.definition) {
			rendered = append(rendered, o.definition)
		}
		if o.isClaim() {
			was, is = append(was, o.was.Name), append(is, o.name)
		}
	}
	unused := Unused(was, rendered)
	var expected []string
	for n := range was {
		if !slices.Contains(unused, was[n]) {
			expected = append(expected, is[n])
		}
	}
	if len(expected) == 0 {
		return
	}
	slices.Sort(expected)
	annotations := i.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.RestoredClaimsAnnotation] = strings.Join(expected, ",")
	i.SetAnnotations(annotations)
}
