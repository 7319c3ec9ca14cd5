package release

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/manifest"
)

// maxRemoved is how many of the removed versions and fields a message names.
const maxRemoved = 10

// ReplacesCRD reports whether an installation with CreateReplace replaces a CRD with what its chart makes of
// it: not if the spec stays the same. It is refused if the CRD has another origin, and if versions or
// fields would go that objects of any user may have: the API server prunes those without a word. The error
// is an Error with ReasonCRD then.
func ReplacesCRD(id Identity, live, after *unstructured.Unstructured) (bool, error) {
	if sameSpec(live, after) {
		return false, nil
	}
	name := manifest.Object{Unstructured: live}.ID().String()
	refuse := func(format string, args ...any) (bool, error) {
		return false, &Error{Reason: ReasonCRD, Err: fmt.Errorf("refuse to replace %s: "+format, append([]any{name}, args...)...)}
	}
	if other := broughtBy(id, live); other != "" {
		return refuse("%s. To use it as it is, set deployOptions.helm.crds to Create; to let this installation replace it, run: "+
			"kubectl annotate %s %s %s=%s", other, strings.ToLower(live.GetKind()), live.GetName(), v1alpha1.AdoptAnnotation, id.installation())
	}
	if lost := removed(live, after); len(lost) > 0 {
		return refuse("the chart removes %s. To keep it as it is, set deployOptions.helm.crds to Create; "+
			"to remove them, apply the chart's CRD yourself once no object uses them", excerpt.Names(lost, maxRemoved))
	}
	return true, nil
}

// sameSpec compares all but metadata and status: a chart may bring other objects among its CRDs.
func sameSpec(live, after *unstructured.Unstructured) bool {
	was, is := maps.Clone(live.Object), maps.Clone(after.Object)
	for _, o := range []map[string]any{was, is} {
		delete(o, "metadata")
		delete(o, "status")
	}
	return equality.Semantic.DeepEqual(was, is)
}

// installation returns the namespace and name of the owner.
func (i Identity) installation() string {
	parts := strings.Split(i.Owner, "/")
	return strings.Join(parts[max(len(parts)-2, 0):], "/")
}

// broughtBy says who brought a CRD that this installation neither has created nor may take over; nothing
// otherwise. The annotation that hands it over is set on the live CRD: a chart cannot help itself.
func broughtBy(id Identity, live *unstructured.Unstructured) string {
	annotations, labels := live.GetAnnotations(), live.GetLabels()
	owner, hash := annotations[v1alpha1.OwnerAnnotation], labels[v1alpha1.OwnerHashLabel]
	heir := annotations[v1alpha1.AdoptAnnotation]
	switch {
	case heir != "" && heir == id.installation():
		return ""
	case owner != "" && owner == id.Owner && (hash == "" || hash == id.OwnerHash):
		return ""
	case owner != "":
		return "it belongs to " + owner
	case annotations[releaseNameAnnotation] != "":
		return fmt.Sprintf("it belongs to the Helm release %s/%s", annotations[releaseNamespaceAnnotation], annotations[releaseNameAnnotation])
	}
	managers := map[string]bool{}
	for _, entry := range live.GetManagedFields() {
		if entry.Subresource == "" {
			managers[entry.Manager] = true
		}
	}
	return fmt.Sprintf("it has no annotation %s; its field managers are %s", v1alpha1.OwnerAnnotation,
		excerpt.Names(slices.Sorted(maps.Keys(managers)), maxRemoved))
}

// removed returns the versions, and the fields of versions, that are in live and not in after, and those
// that would not hold any more what they may hold now.
func removed(live, after *unstructured.Unstructured) []string {
	if live.GroupVersionKind().GroupKind() != crdKind {
		return nil
	}
	var was, is apiextensionsv1.CustomResourceDefinition
	convert := runtime.DefaultUnstructuredConverter.FromUnstructured
	if convert(live.Object, &was) != nil || convert(after.Object, &is) != nil {
		return []string{"everything that it cannot be compared in"}
	}
	var lost []string
	if was.Spec.PreserveUnknownFields && !is.Spec.PreserveUnknownFields {
		lost = append(lost, "spec.preserveUnknownFields")
	}
	for _, v := range was.Spec.Versions {
		i := slices.IndexFunc(is.Spec.Versions, func(w apiextensionsv1.CustomResourceDefinitionVersion) bool { return w.Name == v.Name })
		if i < 0 {
			lost = append(lost, "version "+v.Name)
			continue
		}
		lost = append(lost, removedOf(v, is.Spec.Versions[i])...)
	}
	return lost
}

func removedOf(was, is apiextensionsv1.CustomResourceDefinitionVersion) []string {
	var lost []string
	if was.Served && !is.Served {
		lost = append(lost, "the serving of version "+was.Name)
	}
	had, has := ptr.Deref(was.Subresources, apiextensionsv1.CustomResourceSubresources{}), ptr.Deref(is.Subresources, apiextensionsv1.CustomResourceSubresources{})
	if had.Status != nil && has.Status == nil {
		lost = append(lost, "subresource status of version "+was.Name)
	}
	if had.Scale != nil && has.Scale == nil {
		lost = append(lost, "subresource scale of version "+was.Name)
	}
	if was.Schema == nil {
		return lost
	}
	var schema *apiextensionsv1.JSONSchemaProps
	if is.Schema != nil {
		schema = is.Schema.OpenAPIV3Schema
	}
	c := &schemaComparison{version: was.Name}
	c.compare("", was.Schema.OpenAPIV3Schema, schema)
	return append(lost, c.lost...)
}

// schemaComparison collects what one version of a CRD loses.
type schemaComparison struct {
	version string
	lost    []string
}

func (c *schemaComparison) lose(what, path string) {
	if path == "" {
		path = "."
	}
	c.lost = append(c.lost, fmt.Sprintf("%s%s of version %s", what, path, c.version))
}

// compare compares the schemas of one place. Where unknown fields are kept, a field that is not named
// any more is kept as well.
func (c *schemaComparison) compare(path string, was, is *apiextensionsv1.JSONSchemaProps) {
	if was == nil {
		return
	}
	if is == nil {
		c.lose("", path)
		return
	}
	keeps := ptr.Deref(is.XPreserveUnknownFields, false)
	if ptr.Deref(was.XPreserveUnknownFields, false) && !keeps {
		c.lose("x-kubernetes-preserve-unknown-fields at ", path)
	}
	widened := is.Type == "" || is.Type == was.Type || was.Type == "integer" && is.Type == "number" || is.XIntOrString
	if !widened || was.XIntOrString && !is.XIntOrString {
		c.lose("the type of ", path)
		return
	}
	more := additional(is.AdditionalProperties)
	for _, name := range slices.Sorted(maps.Keys(was.Properties)) {
		before := was.Properties[name]
		now, named := is.Properties[name]
		switch {
		case named:
			c.compare(path+"."+name, &before, &now)
		case more != nil:
			c.compare(path+"."+name, &before, more)
		case !keeps:
			c.lose("", path+"."+name)
		}
	}
	if before := additional(was.AdditionalProperties); before != nil && !keeps {
		c.compare(path+".*", before, more)
	}
	if was.Items != nil && was.Items.Schema != nil {
		var items *apiextensionsv1.JSONSchemaProps
		if is.Items != nil {
			items = is.Items.Schema
		}
		if items != nil || !keeps {
			c.compare(path+"[]", was.Items.Schema, items)
		}
	}
}

// additional returns the schema of the fields that have no name; nil if there are none.
func additional(p *apiextensionsv1.JSONSchemaPropsOrBool) *apiextensionsv1.JSONSchemaProps {
	switch {
	case p == nil:
		return nil
	case p.Schema != nil:
		return p.Schema
	case p.Allows:
		return &apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: ptr.To(true)}
	}
	return nil
}
