package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/diff"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/cmd/internal/installation"
	"waybill.dev/waybill/cmd/internal/mask"
	"waybill.dev/waybill/sync/render/values"
	"waybill.dev/waybill/sync/render/values/schema"
)

// maxSchemas is how many schemas are read to know which of the default values of a definition are secret.
const maxSchemas = 20

// curtain hides in objects, before a page shows them, the data of Secrets and what charts mark as secret: of the values of
// ApplicationInstallations and ApplicationDefinitions, at any depth, as in templates. Where it is not known what a chart
// marks, all values are hidden. It is made for a page, and is not safe for concurrent use.
type curtain struct {
	// of returns what hides the values of a version of a definition, and offers returns a definition.
	of     func(definition *v1alpha1.ApplicationDefinition, version string) (secrecy, error)
	offers func(name string) (*v1alpha1.ApplicationDefinition, error)
	warn   func(format string, args ...any)
	looks  *schema.Looks      // for all that is hidden
	known  map[string]secrecy // by definition and version
	// failed has definitions of which it could not be found out for one version, which may have taken long: they are not
	// asked for again.
	failed map[string]error
	// strikes hides secret values wherever a chart has put them.
	strikes strikes
}

// curtain returns what hides what is secret on a page of the viewer of a place.
func (s *server) curtain(ctx context.Context, at fleet.Place) *curtain {
	looks := schema.NewLooks()
	return &curtain{
		of: func(definition *v1alpha1.ApplicationDefinition, version string) (secrecy, error) {
			found, err := s.schemaOf(ctx, at, definition, version)
			if err != nil && !errors.Is(err, errNoSchema) {
				return secrecy{}, err
			}
			return secrecyBy(found, looks), nil
		},
		offers: func(name string) (*v1alpha1.ApplicationDefinition, error) { return offeredDefinition(ctx, at, name) },
		warn:   at.Warn, looks: looks, known: map[string]secrecy{}, failed: map[string]error{},
	}
}

// curtainOf returns what hides what is secret on pages of an object.
func (s *server) curtainOf(ctx context.Context, sub *subject) *curtain {
	at := s.placeOf(sub)
	c := s.curtain(ctx, at)
	if !isInstallation(sub) {
		return c
	}
	if inst, err := sub.installation(); err == nil {
		s.strike(ctx, c, at, inst)
	}
	return c
}

// view returns what compares without showing what is secret.
func (c *curtain) view(at fleet.Place, shared *installation.Sources) diff.View {
	return diff.View{Place: at, Sources: shared, Hide: c.pair}
}

// offeredDefinition returns a definition with its sources: of the hub, else of the cluster itself.
func offeredDefinition(ctx context.Context, at fleet.Place, name string) (*v1alpha1.ApplicationDefinition, error) {
	var failed error
	for _, in := range []*fleet.Cluster{at.Hub, at.Target} {
		c, err := in.Client()
		if err != nil {
			return nil, err
		}
		found := &v1alpha1.ApplicationDefinition{}
		err = c.Get(ctx, client.ObjectKey{Name: name}, found)
		if err == nil && found.InCatalog() {
			return found, nil
		}
		if failed == nil && err != nil {
			failed = fmt.Errorf("get ApplicationDefinition %s: %w", name, in.Explain(err))
		}
	}
	if failed == nil {
		failed = fmt.Errorf("ApplicationDefinition %s is a copy without sources", name)
	}
	return nil, failed
}

// version returns what hides the values of a version of a definition; of an installation that names none, of the default one.
func (c *curtain) version(name, version string) secrecy {
	return c.once(name, version, func() (secrecy, error) {
		definition, err := c.offers(name)
		if err != nil {
			return secrecy{}, err
		}
		return c.of(definition, cmp.Or(version, definition.Spec.DefaultVersion))
	})
}

// versions returns what hides values that all versions of a definition have.
func (c *curtain) versions(name string) secrecy {
	return c.once(name, "*", func() (secrecy, error) {
		definition, err := c.offers(name)
		if err != nil {
			return secrecy{}, err
		}
		hides, seen := secrecy{}, map[string]bool{}
		for _, v := range definition.Spec.Versions {
			if copied := definition.GetValuesSchema(v.Version); copied != nil && copied.Digest != "" {
				if seen[copied.Digest] {
					continue
				}
				seen[copied.Digest] = true
			}
			one, err := c.of(definition, v.Version)
			if err == nil && len(hides.schemas) == maxSchemas {
				err = fmt.Errorf("its versions have more than %d schemas", maxSchemas)
			}
			if err != nil {
				return secrecy{}, err
			}
			hides = hides.with(one)
		}
		return hides, nil
	})
}

// once asks once what hides the values of a version, or of all of them for *, and says why if that is everything.
func (c *curtain) once(name, version string, find func() (secrecy, error)) secrecy {
	if len(name) > validation.DNS1123SubdomainMaxLength { // what is in a manifest may have any length
		return secrecy{all: true}
	}
	key := name + " " + version
	if found, known := c.known[key]; known {
		return found
	}
	var found secrecy
	err := c.failed[name]
	if err == nil {
		found, err = find()
	}
	if err != nil {
		found = secrecy{all: true}
		c.failed[name] = err
		c.warn("All values for ApplicationDefinition %s are hidden, as it is not known which are secret: %s", name, err)
	}
	c.known[key] = found
	return found
}

// one returns an object as it is shown.
func (c *curtain) one(object *unstructured.Unstructured) *unstructured.Unstructured {
	_, shown := c.pair(nil, object)
	return shown
}

// pair returns two states of an object as they are shown, so that values that differ still do. Either may be nil.
func (c *curtain) pair(before, after *unstructured.Unstructured) (was, is *unstructured.Unstructured) {
	was, is = mask.Pair(before, after)
	was, is = was.DeepCopy(), is.DeepCopy()
	old, next := c.held(was), c.held(is)
	for key, one := range old {
		one.hide(next[key])
	}
	for key, one := range next {
		if old[key] == nil {
			one.hide(nil)
		}
	}
	for _, shown := range []*unstructured.Unstructured{was, is} {
		if shown == nil {
			continue
		}
		if len(old)+len(next) > 0 {
			hideLastApplied(shown)
		}
		c.strikes.in(shown.Object)
	}
	if c.strikes.tooMany() {
		c.warn("Every text of what is rendered is hidden: secret values are too long together to be looked for")
	}
	if c.looks.Spent() {
		c.warn("Values are hidden that the charts may not mark as secret: their schemas are too entangled, or the values too many, to find out")
	}
	return was, is
}

// held returns the values in an object, at any depth, by where they are.
func (c *curtain) held(object *unstructured.Unstructured) map[string]*held {
	found := map[string]*held{}
	for key, manifest := range mask.Find(object, func(m map[string]any) bool { return m["apiVersion"] == v1alpha1.GroupVersion.String() }) {
		name, _, _ := unstructured.NestedString(manifest, "metadata", "name")
		spec, _ := manifest["spec"].(map[string]any)
		add := func(in map[string]any, field, where string, hides func() secrecy) {
			if in[field] != nil {
				found[key+" "+where] = &held{in: in, field: field, hides: hides()}
			}
		}
		switch manifest["kind"] {
		case v1alpha1.ApplicationInstallationKind:
			of := func() secrecy {
				definition, _, _ := unstructured.NestedString(spec, "applicationRef", "name")
				version, _, _ := unstructured.NestedString(spec, "applicationRef", "version")
				return c.version(definition, version)
			}
			add(spec, "values", "values", of)
			add(spec, "valuesBlock", "valuesBlock", of)
		case v1alpha1.ApplicationDefinitionKind:
			add(spec, "defaultValues", "defaultValues", func() secrecy { return c.versions(name) })
			versions, _ := spec["versions"].([]any)
			for _, entry := range versions {
				one, _ := entry.(map[string]any)
				version, _ := one["version"].(string)
				template, _ := one["template"].(map[string]any)
				add(template, "values", "values of "+version, func() secrecy { return c.version(name, version) })
			}
		}
	}
	return found
}

// held are values in a manifest: a map, or a text of YAML.
type held struct {
	in    map[string]any
	field string
	hides secrecy
}

// hide hides what is secret, so that what differs from another state still does. That is hidden, too; it may be nil.
func (h *held) hide(other *held) {
	hides, own := h.hides, h.values()
	var next map[string]any
	if other != nil {
		hides, next = hides.with(other.hides), other.values()
	}
	was, is := hides.pair(own, next)
	h.show(own, was)
	if other != nil {
		other.show(next, is)
	}
}

// values returns the values; nil if they are none.
func (h *held) values() map[string]any {
	switch v := h.in[h.field].(type) {
	case map[string]any:
		return v
	case string:
		if parsed, err := values.Parse([]byte(v)); err == nil {
			return parsed
		}
	}
	return nil
}

// show has the manifest have values with secrets hidden. A text from which nothing is hidden stays as it was written; what are no
// values is not shown.
func (h *held) show(own, hidden map[string]any) {
	_, written := h.in[h.field].(string)
	switch {
	case own == nil:
		h.in[h.field] = mask.Hidden
	case !written:
		h.in[h.field] = hidden
	case !reflect.DeepEqual(own, hidden):
		text, err := yaml.Marshal(hidden)
		if err != nil {
			text = []byte(mask.Hidden)
		}
		h.in[h.field] = string(text)
	}
}

// hideLastApplied hides the copies of earlier states that kubectl keeps.
func hideLastApplied(object *unstructured.Unstructured) {
	for _, manifest := range mask.Find(object, func(m map[string]any) bool {
		_, has, _ := unstructured.NestedFieldNoCopy(m, "metadata", "annotations", mask.LastApplied)
		return has
	}) {
		_ = unstructured.SetNestedField(manifest, mask.Hidden, "metadata", "annotations", mask.LastApplied) // it is there
	}
}
