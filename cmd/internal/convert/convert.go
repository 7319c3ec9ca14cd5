package convert

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/json"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

// conversion is the conversion of one Application, with the notes on it.
type conversion struct {
	old   oldApplication
	app   *v1alpha1.Application
	notes []string
}

// convert turns an Application of app.k8s.io/v1beta1 into our kind. It returns a note for each
// field that could not be carried over unchanged, and fails if the object cannot be converted at
// all.
func convert(object *unstructured.Unstructured) (*v1alpha1.Application, []string, error) {
	c := &conversion{}
	if err := c.read(object); err != nil {
		return nil, nil, err
	}
	c.metadata()
	c.descriptor()
	c.links()
	c.components()
	c.leftBehind()
	if errs := validation.ValidateApplication(c.app, nil); len(errs) > 0 {
		return nil, c.notes, errs.ToAggregate()
	}
	return c.app, c.notes, nil
}

// notef adds a note on a field.
func (c *conversion) notef(field, format string, args ...any) {
	c.notes = append(c.notes, field+": "+fmt.Sprintf(format, args...))
}

// read decodes the object. Fields that the kind does not have are noted; a value of the wrong type
// is an error.
func (c *conversion) read(object *unstructured.Unstructured) error {
	raw, err := object.MarshalJSON()
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	unknown, err := json.UnmarshalStrict(raw, &c.old)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	for _, e := range unknown {
		c.notes = append(c.notes, e.Error()+": not carried over")
	}
	return nil
}

// metadata carries over the metadata that does not belong to the old object only.
func (c *conversion) metadata() {
	annotations := maps.Clone(c.old.Annotations)
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	c.app = &v1alpha1.Application{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.ApplicationKind},
		ObjectMeta: metav1.ObjectMeta{
			Name: c.old.Name, Namespace: c.old.Namespace, Labels: c.old.Labels, Annotations: annotations,
		},
	}
	if len(c.old.OwnerReferences) > 0 {
		c.notef("metadata.ownerReferences", "not carried over: the new Application has no owner, and is deleted only by you")
	}
	if len(c.old.Finalizers) > 0 {
		c.notef("metadata.finalizers", "not carried over: %s", strings.Join(c.old.Finalizers, ", "))
	}
}

func (c *conversion) descriptor() {
	from, to := c.old.Spec.Descriptor, &c.app.Spec
	to.Type, to.Version, to.Description, to.Keywords = from.Type, from.Version, from.Description, from.Keywords
	if to.Type == "" {
		to.Type = c.old.Name
		c.notef("spec.descriptor.type", "is empty; spec.type is required, and is the name %q", to.Type)
	}
	for _, m := range from.Maintainers {
		to.Maintainers = append(to.Maintainers, m.String())
	}
	for _, o := range from.Owners {
		c.notef("spec.descriptor.owners", "not carried over, there is no such field: %s", o)
	}
	if n := len(from.Icons); n > 0 {
		c.notef("spec.descriptor.icons", "not carried over, there is no such field: %d", n)
	}
	if from.Notes != "" {
		c.notef("spec.descriptor.notes", "not carried over, there is no such field: %q", from.Notes)
	}
}

// String formats a contact as in an e-mail: Jane Doe <jane@example.com> (https://example.com).
func (c oldContact) String() string {
	var parts []string
	if c.Name != "" {
		parts = append(parts, c.Name)
	}
	if c.Email != "" {
		parts = append(parts, "<"+c.Email+">")
	}
	if c.URL != "" {
		parts = append(parts, "("+c.URL+")")
	}
	return strings.Join(parts, " ")
}

// The descriptions of links that we have fields for.
var (
	ofLicense   = regexp.MustCompile(`(?i)licen[cs]e`)
	ofDashboard = regexp.MustCompile(`(?i)dashboard|console|admin|monitoring`)
	ofAbout     = regexp.MustCompile(`(?i)about|home|website|web ?site`)
)

// links fills url, license and dashboard according to the descriptions. If no description says
// which link is the url, it is the first one that is none of these.
func (c *conversion) links() {
	left := slices.Clone(c.old.Spec.Descriptor.Links)
	take := func(description *regexp.Regexp) string {
		i := slices.IndexFunc(left, func(l oldLink) bool { return l.URL != "" && description.MatchString(l.Description) })
		if i < 0 {
			return ""
		}
		url := left[i].URL
		left = slices.Delete(left, i, i+1)
		return url
	}
	spec := &c.app.Spec
	spec.LicenseURL, spec.DashboardURL, spec.AboutURL = take(ofLicense), take(ofDashboard), take(ofAbout)
	if spec.AboutURL == "" {
		spec.AboutURL = take(regexp.MustCompile(""))
	}
	for _, l := range left {
		c.notef("spec.descriptor.links", "not carried over, url, license and dashboard are all there is: %q %s", l.Description, l.URL)
	}
}

// components carries over the selector, and each kind as a component without a name, which stands
// for every selected object of the kind.
func (c *conversion) components() {
	spec := &c.app.Spec
	spec.Selector = c.old.Spec.Selector
	spec.Ownership = v1alpha1.OwnershipObserve
	if c.old.Spec.AddOwnerRef {
		spec.Ownership = v1alpha1.OwnershipOwn
		c.notef("spec.addOwnerRef", "the old Application owns its components: delete it with --cascade=orphan, so that they stay")
	}
	for _, k := range c.old.Spec.ComponentKinds {
		component := v1alpha1.ApplicationComponent{Group: groupOf(k.Group), Kind: k.Kind}
		if component.Group != k.Group {
			c.notef("spec.componentKinds", "%s: group %q is taken as %q", k.Kind, k.Group, component.Group)
		}
		if slices.Contains(spec.Components, component) {
			c.notef("spec.componentKinds", "%s: is there twice", k.Kind)
			continue
		}
		spec.Components = append(spec.Components, component)
	}
}

var version = regexp.MustCompile(`^v[0-9]`)

// groupOf parses what manifests write as a group: a group, a group followed by a version, or a
// version only, which like the word core means the core group.
func groupOf(written string) string {
	group, _, _ := strings.Cut(written, "/")
	if group == "core" || version.MatchString(group) {
		return ""
	}
	return group
}

// leftBehind notes the other fields that have no counterpart.
func (c *conversion) leftBehind() {
	for _, info := range c.old.Spec.Info {
		// A value may be a password, so it is not shown.
		c.notef("spec.info", "not carried over, there is no such field: %q", info.Name)
	}
	if phase := c.old.Spec.AssemblyPhase; phase != "" {
		c.notef("spec.assemblyPhase", "not carried over, status.components says what is there: %q", phase)
	}
}
