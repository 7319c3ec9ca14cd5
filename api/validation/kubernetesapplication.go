package validation

import (
	"cmp"
	"encoding/json"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
)

// ValidateKubernetesApplication returns what is wrong with a KubernetesApplication as it shall
// become, and whether it may follow old. One template that is
// wrong is enough to refuse all of it.
func ValidateKubernetesApplication(obj, old *v1alpha1.KubernetesApplication) field.ErrorList {
	spec := &obj.Spec
	errs := validateMetadata(obj.ObjectMeta, namespaced)
	errs = append(errs, validateNameLength(obj.Name)...)
	selector := specPath.Child("clusterSelector")
	if spec.ClusterSelector == nil {
		errs = append(errs, field.Required(selector, "the clusters that it may run in; {} for any"))
	}
	errs = append(errs, validateSelector(spec.ClusterSelector, selector)...)
	errs = append(errs, validateClusterName(spec.ClusterName)...)
	templates := specPath.Child("resourceTemplates")
	errs = append(errs, validateResourceTemplates(spec.ResourceTemplates, templates)...)
	if old == nil {
		return append(errs, validateRoom(spec.ResourceTemplates, templates)...)
	}
	if !apiequality.Semantic.DeepEqual(spec.ResourceTemplates, old.Spec.ResourceTemplates) {
		errs = append(errs, validateRoom(spec.ResourceTemplates, templates)...)
	}
	if !apiequality.Semantic.DeepEqual(spec.ClusterSelector, old.Spec.ClusterSelector) {
		errs = append(errs, immutable(selector, field.OmitValueType{}, "delete and recreate the application to move it"))
	}
	errs = append(errs, immutableClusterName(spec.ClusterName, old.Spec.ClusterName)...)
	return append(errs, immutableIdentities(spec.ResourceTemplates, old.Spec.ResourceTemplates, templates)...)
}

// maxTemplates is how large, as JSON, what is templated may be. An API server stores a megabyte
// and a half of an object: this leaves room for its metadata, and for what is written into its
// status.
const maxTemplates = 1 << 20

func validateRoom(templated any, path *field.Path) field.ErrorList {
	text, err := json.Marshal(templated)
	if err != nil {
		return nil // the manifest is no object, which is said of it
	}
	if len(text) <= maxTemplates {
		return nil
	}
	return field.ErrorList{field.TooLong(path, "", maxTemplates)}
}

// KubernetesApplicationWarnings returns what is allowed in a KubernetesApplication and unwise. old
// is nil on create.
func KubernetesApplicationWarnings(obj, old *v1alpha1.KubernetesApplication) []string {
	warnings := renamed(obj, old)
	firsts := map[identity]string{}
	for i, t := range obj.Spec.ResourceTemplates {
		path := specPath.Child("resourceTemplates").Index(i)
		if ns := t.Metadata.Namespace; ns != "" && ns != obj.Namespace {
			warnings = append(warnings, path.Child("metadata", "namespace").String()+
				" is ignored: resources are created in the namespace of their application")
		}
		id := templated(t)
		if first, taken := firsts[id]; taken {
			warnings = append(warnings, fmt.Sprintf("%s is of the same object as the resource template %s: only one of them can own it", path, first))
			continue
		}
		firsts[id] = t.Metadata.Name
	}
	return append(warnings, colliding(obj.Spec.ResourceTemplates)...)
}

// colliding warns of copies of Secrets that have the name of another copy, or of a Secret that is
// templated: only one of them can be in the cluster.
func colliding(templates []v1alpha1.ResourceTemplate) []string {
	taken := map[identity]string{}
	for _, t := range templates {
		if id := templated(t); id.kind == "Secret" {
			id.namespace = cmp.Or(id.namespace, metav1.NamespaceDefault)
			taken[id] = "the object of the resource template " + t.Metadata.Name
		}
	}
	var warnings []string
	for i, t := range templates {
		resource := v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Name: t.Metadata.Name}}
		namespace := cmp.Or(t.Spec.Template.Metadata.Namespace, metav1.NamespaceDefault)
		for j, ref := range t.Spec.Secrets {
			id := identity{kind: "Secret", namespace: namespace, name: resource.PropagatedSecretName(ref.Name)}
			if other, collides := taken[id]; collides {
				warnings = append(warnings, fmt.Sprintf("%s: the copy is Secret %s/%s, and so is %s: give one of the resource templates another name",
					specPath.Child("resourceTemplates").Index(i).Child("spec", "secrets").Index(j), id.namespace, id.name, other))
				continue
			}
			taken[id] = fmt.Sprintf("the copy of %s of the resource template %s", ref.Name, t.Metadata.Name)
		}
	}
	return warnings
}

// identity is what distinguishes an object in a cluster from others.
type identity struct{ kind, namespace, name string }

func templated(t v1alpha1.ResourceTemplate) identity {
	template := t.Spec.Template
	return identity{
		kind:      template.GroupVersionKind().GroupKind().String(),
		namespace: template.Metadata.Namespace,
		name:      template.Metadata.Name,
	}
}

// renamed warns of resource templates whose object goes on under another name: with the resource of
// the old name the object is deleted, and that of the new one recreates it.
func renamed(obj, old *v1alpha1.KubernetesApplication) []string {
	if old == nil {
		return nil
	}
	left := map[string]bool{}
	for _, t := range obj.Spec.ResourceTemplates {
		left[t.Metadata.Name] = true
	}
	before, names := map[identity]string{}, map[string]bool{}
	for _, t := range old.Spec.ResourceTemplates {
		names[t.Metadata.Name] = true
		if !left[t.Metadata.Name] {
			before[templated(t)] = t.Metadata.Name
		}
	}
	var warnings []string
	for i, t := range obj.Spec.ResourceTemplates {
		if was, gone := before[templated(t)]; gone && !names[t.Metadata.Name] {
			warnings = append(warnings, fmt.Sprintf("%s names the object of the removed resource template %s: renaming a resource template deletes its object and creates it again; "+
				"keep the name %s to keep the object", specPath.Child("resourceTemplates").Index(i), was, was))
		}
	}
	return warnings
}

// DefaultKubernetesApplication fills in what the user left out: a client that replaces the
// application without naming its cluster does not mean to take it away. old is nil on
// create. It is idempotent.
func DefaultKubernetesApplication(obj, old *v1alpha1.KubernetesApplication) {
	if old != nil && obj.Spec.ClusterName == "" {
		obj.Spec.ClusterName = old.Spec.ClusterName
	}
}

func validateResourceTemplates(templates []v1alpha1.ResourceTemplate, path *field.Path) field.ErrorList {
	if len(templates) == 0 {
		return field.ErrorList{field.Required(path, "one or more")}
	}
	errs := atMost(len(templates), v1alpha1.MaxResourceTemplates, path)
	errs = append(errs, duplicates(templates, path, func(t v1alpha1.ResourceTemplate) string { return t.Metadata.Name })...)
	for i := range templates {
		t := &templates[i]
		at := path.Index(i)
		errs = append(errs, validateTemplateMetadata(t.Metadata, at.Child("metadata"))...)
		errs = append(errs, validateObjectTemplate(t.Spec.Template, at.Child("spec", "template"))...)
		errs = append(errs, validateResourceSecrets(t.Spec.Secrets, t.Spec.Template.GroupVersionKind().GroupKind(), at.Child("spec", "secrets"))...)
	}
	return errs
}

func validateTemplateMetadata(metadata v1alpha1.ResourceTemplateMetadata, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if metadata.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	} else {
		errs = append(errs, validateDNSLabel(metadata.Name, path.Child("name"))...)
	}
	errs = append(errs, metav1validation.ValidateLabels(metadata.Labels, path.Child("labels"))...)
	return append(errs, apivalidation.ValidateAnnotations(metadata.Annotations, path.Child("annotations"))...)
}

// immutableIdentities compares template by template, by name.
func immutableIdentities(templates, old []v1alpha1.ResourceTemplate, path *field.Path) field.ErrorList {
	before := make(map[string]v1alpha1.ObjectTemplate, len(old))
	for _, t := range old {
		before[t.Metadata.Name] = t.Spec.Template
	}
	var errs field.ErrorList
	for i, t := range templates {
		if was, ok := before[t.Metadata.Name]; ok {
			for _, err := range immutableIdentity(t.Spec.Template, was, path.Index(i).Child("spec", "template")) {
				err.Detail = "resource template " + t.Metadata.Name + ": " + err.Detail
				errs = append(errs, err)
			}
		}
	}
	return errs
}

func immutableIdentity(template, old v1alpha1.ObjectTemplate, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct {
		path     *field.Path
		new, old string
	}{
		{path.Child("apiVersion"), template.APIVersion, old.APIVersion},
		{path.Child("kind"), template.Kind, old.Kind},
		{path.Child("metadata", "name"), template.Metadata.Name, old.Metadata.Name},
		{path.Child("metadata", "namespace"), template.Metadata.Namespace, old.Metadata.Namespace},
	} {
		if f.new != f.old {
			errs = append(errs, immutable(f.path, f.new, identityAdvice))
		}
	}
	return errs
}

func validateNameLength(name string) field.ErrorList {
	if len(name) <= maxResourceNameLength {
		return nil
	}
	return field.ErrorList{field.TooLong(metadataPath.Child("name"), name, maxResourceNameLength)}
}

func validateClusterName(name string) field.ErrorList {
	if name == "" {
		return nil
	}
	return validateDNSSubdomain(name, specPath.Child("clusterName"))
}

func immutableClusterName(name, old string) field.ErrorList {
	if old == "" || name == old {
		return nil
	}
	return field.ErrorList{immutable(specPath.Child("clusterName"), name, "delete and recreate the application to move it")}
}
