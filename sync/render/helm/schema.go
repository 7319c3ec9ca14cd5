package helm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
)

// ValidateValues checks values, merged with the chart's own, against the values.schema.json of the
// chart and of its subcharts. It returns ErrInvalidValues with a line for each value that does not
// fit.
//
// Helm would fetch parts of a schema that are referenced by URL, or read them from the local disk.
// Here they are not checked, and the warnings name them: a chart must not make us contact other
// servers.
func ValidateValues(c *chart.Chart, values map[string]any) (warnings []string, err error) {
	if err := checkSubcharts(c, values, ""); err != nil {
		return nil, err
	}
	if !hasSchema(c) {
		return nil, nil
	}
	c, values = Clone(c), copyValues(values)
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidValues, err)
	}
	all, err := chartutil.CoalesceValues(c, values)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidValues, err)
	}
	v := &validation{remote: map[string]bool{}}
	if err := v.chart(c, all, nil); err != nil {
		return nil, err
	}
	for _, url := range slices.Sorted(maps.Keys(v.remote)) {
		warnings = append(warnings, fmt.Sprintf("values are not checked against %s: schemas are not fetched", url))
	}
	if len(v.problems) > 0 {
		return warnings, fmt.Errorf("%w: %s", ErrInvalidValues, v)
	}
	return warnings, nil
}

func hasSchema(c *chart.Chart) bool {
	return c.Schema != nil || slices.ContainsFunc(c.Dependencies(), hasSchema)
}

// validation collects the faults in the values of a chart and of its subcharts.
type validation struct {
	problems []string
	// remote are the references of schemas that were not fetched.
	remote map[string]bool
}

// String lists the faults, in the same order each time: the library finds them in that of a map.
func (v *validation) String() string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(v.problems))), "; ")
}

// Load returns a schema that allows everything in place of a referenced one.
func (v *validation) Load(url string) (any, error) {
	v.remote[url] = true
	return true, nil
}

// chart checks the values at path, which are those of c, and the values of c's subcharts below it.
func (v *validation) chart(c *chart.Chart, values map[string]any, path []string) error {
	if c.Schema != nil {
		if err := v.schema(c, values, path); err != nil {
			return err
		}
	}
	for _, sub := range c.Dependencies() {
		subPath := append(slices.Clone(path), sub.Name())
		below, ok := values[sub.Name()].(map[string]any)
		if !ok {
			continue
		}
		if err := v.chart(sub, below, subPath); err != nil {
			return err
		}
	}
	return nil
}

// checkSubcharts rejects anything but an object as the values of a subchart. Helm does so too, but
// shows the value.
func checkSubcharts(c *chart.Chart, values map[string]any, path string) error {
	for _, sub := range c.Dependencies() {
		for _, name := range namesOf(c, sub) {
			value, ok := values[name]
			below, isMap := value.(map[string]any)
			if ok && !isMap {
				return fmt.Errorf("%w: %s%s must be an object: it holds the values of the chart %s", ErrInvalidValues, path, name, sub.Name())
			}
			if err := checkSubcharts(sub, below, path+name+"."); err != nil {
				return err
			}
		}
	}
	return nil
}

// namesOf returns the names under which c uses sub.
func namesOf(c, sub *chart.Chart) []string {
	var names []string
	for _, dep := range c.Metadata.Dependencies {
		if dep != nil && dep.Name == sub.Name() {
			names = append(names, cmp.Or(dep.Alias, dep.Name))
		}
	}
	if len(names) == 0 {
		return []string{sub.Name()}
	}
	return names
}

func (v *validation) schema(c *chart.Chart, values map[string]any, path []string) (err error) {
	const name = "chart:///values.schema.json"
	defer func() {
		// The library has been seen to panic on absurd schemas.
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: read values.schema.json of chart %s: %v", ErrRender, c.Name(), r)
		}
	}()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.Schema))
	if err != nil {
		return fmt.Errorf("%w: parse values.schema.json of chart %s: %w", ErrRender, c.Name(), err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(v)
	if err := compiler.AddResource(name, doc); err != nil {
		return fmt.Errorf("%w: read values.schema.json of chart %s: %w", ErrRender, c.Name(), err)
	}
	compiled, err := compiler.Compile(name)
	var refused *jsonschema.SchemaValidationError
	var invalid *jsonschema.ValidationError
	if errors.As(err, &refused) && errors.As(refused.Err, &invalid) {
		faults := &validation{}
		faults.collect(invalid, nil)
		return fmt.Errorf("%w: values.schema.json of chart %s is not a valid JSON schema: %s", ErrRender, c.Name(), faults)
	}
	if err != nil {
		return fmt.Errorf("%w: read values.schema.json of chart %s: %w", ErrRender, c.Name(), err)
	}
	plain, err := asJSON(values)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidValues, err)
	}
	if err := compiled.Validate(plain); errors.As(err, &invalid) {
		v.collect(invalid, path)
	} else if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidValues, err)
	}
	return nil
}

// asJSON converts values, which hold Helm's and Go's types, to a form that can be validated against
// a schema.
func asJSON(values map[string]any) (any, error) {
	data, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(data))
}

// collect writes one line for each innermost cause. Strings among the values are never shown: they
// may be secret.
func (v *validation) collect(invalid *jsonschema.ValidationError, path []string) {
	for _, cause := range invalid.Causes {
		v.collect(cause, path)
	}
	if len(invalid.Causes) > 0 {
		return
	}
	where := strings.Join(append(slices.Clone(path), invalid.InstanceLocation...), ".")
	if where == "" {
		where = "values"
	}
	v.problems = append(v.problems, where+": "+describe(invalid.ErrorKind))
}

// describe describes a fault. Most texts of the library name only the type or the bound; those that
// would show the value are replaced.
func describe(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.AdditionalProperties:
		slices.Sort(k.Properties)
		return k.LocalizedString(message.NewPrinter(language.English))
	case *kind.Pattern:
		return fmt.Sprintf("must match the pattern %s", k.Want)
	case *kind.Format:
		return fmt.Sprintf("must be a valid %s", k.Want)
	case *kind.ContentEncoding:
		return fmt.Sprintf("must be encoded as %s", k.Want)
	case *kind.ContentMediaType:
		return fmt.Sprintf("must be of media type %s", k.Want)
	default:
		return k.LocalizedString(message.NewPrinter(language.English))
	}
}
