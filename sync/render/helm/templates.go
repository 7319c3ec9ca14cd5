package helm

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"

	"waybill.dev/waybill/api/expansion"
)

// Rendered is what the templates of a chart were rendered to. All of it together is bounded, and so is
// what it takes once it is parsed.
type Rendered struct {
	// Chart is the chart as Helm records it, which shares its contents with what was rendered: without
	// the dependencies that the values disable, and with the values that it imports from the others. It
	// has no subcharts, which Helm does not record.
	Chart *chart.Chart
	// Files has the texts by the paths of their templates, notes included.
	Files map[string]string
	// Warnings list what was not checked.
	Warnings []string
}

// Templates renders the templates of a chart in this process. It returns ErrInvalidValues or ErrRender.
// The chart is not changed. lookup answers the template function of that name; nil if it finds nothing,
// whatever Options.Cluster says.
func Templates(c *chart.Chart, o Options, lookup Lookup) (*Rendered, error) {
	return guarded(c, func() (*Rendered, error) {
		rendered, _, err := templates(c, o, lookup)
		return rendered, err
	})
}

// templates does what Templates does, and returns what Helm makes of the chart before it renders it.
func templates(original *chart.Chart, o Options, lookup Lookup) (*Rendered, *chart.Chart, error) {
	c, values := Clone(original), copyValues(o.Values)
	warnings, err := ValidateValues(c, values)
	if err != nil {
		return nil, nil, err
	}
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrInvalidValues, err)
	}
	capabilities, err := o.capabilities(c)
	if err != nil {
		return nil, nil, err
	}
	all, err := chartutil.ToRenderValuesWithSchemaValidation(c, values, o.release(), capabilities, true)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrInvalidValues, err)
	}
	var files map[string]string
	if lookup == nil {
		files, err = engine.Render(c, all)
	} else {
		files, err = engine.RenderWithClientProvider(c, all, &provider{lookup: lookup})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrRender, &concealed{err})
	}
	rendered := &Rendered{Files: files, Warnings: warnings}
	if err := rendered.check(); err != nil {
		return nil, nil, err
	}
	rendered.Chart, err = recordable(original, c)
	return rendered, c, err
}

// HasDependencies reports whether a chart, or one of its subcharts, lists dependencies: only then does
// Helm record it other than it is.
func HasDependencies(c *chart.Chart) bool {
	return c.Metadata != nil && c.Metadata.Dependencies != nil || slices.ContainsFunc(c.Dependencies(), HasDependencies)
}

// recordable returns a chart as Helm records it. processed is what Helm has made of it.
func recordable(original, processed *chart.Chart) (*chart.Chart, error) {
	if !HasDependencies(original) {
		return Recorded(original, original.Metadata, original.Values), nil
	}
	// Values are imported from one chart into the next, and may grow each time.
	data, err := json.Marshal(processed.Values)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidValues, err)
	}
	if len(data) > maxManifestBytes {
		return nil, fmt.Errorf("%w: the values of chart %s take %d bytes with those that it imports, and the limit is %d",
			ErrRender, original.Name(), len(data), maxManifestBytes)
	}
	return Recorded(original, processed.Metadata, processed.Values), nil
}

// Recorded returns a chart as Helm records it, with the metadata and the values that Helm made of its own.
func Recorded(original *chart.Chart, metadata *chart.Metadata, values map[string]any) *chart.Chart {
	return &chart.Chart{
		Metadata: metadata, Lock: original.Lock, Templates: original.Templates, Values: values, Schema: original.Schema, Files: original.Files,
	}
}

// maxManifestValues bounds how many values the manifests of one release hold together, which take many
// times as much memory as their texts.
const maxManifestValues = 300_000

// named is a text and the name of its file.
type named struct{ name, text string }

// noValue is what Helm takes out of every text that it has rendered.
const noValue = "<no value>"

// check rejects what was rendered if it is too large, or if Helm would make something else of it: it takes
// noValue out of a flat chart once more, and writes the names of templates into comments of the manifest.
func (r *Rendered) check() error {
	var texts []named
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		if strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsGraphic(c) }) {
			return fmt.Errorf("%w: the name of template %q has characters that cannot be printed", ErrRender, name)
		}
		if strings.Contains(r.Files[name], noValue) {
			return fmt.Errorf("%w: %s renders to a text with %s in it, which stands for what has no value", ErrRender, name, noValue)
		}
		texts = append(texts, named{name, r.Files[name]})
	}
	return check(texts)
}

// Checked is what is known of a chart and values before anything is rendered.
type Checked struct {
	// CRDs are the files of the crds folders, of the chart and of the subcharts that the values enable,
	// each once.
	CRDs []CRD
	// Warnings list what was not checked.
	Warnings []string
}

// CRD is a file of a crds folder.
type CRD struct {
	Name string
	Data []byte
}

// Validate does what ValidateValues does, and returns the CRDs, which are applied before anything is
// rendered. It checks their size.
func Validate(c *chart.Chart, values map[string]any) (*Checked, error) {
	warnings, err := ValidateValues(c, values)
	checked := &Checked{Warnings: warnings}
	if err != nil {
		return checked, err
	}
	c = Clone(c)
	if err := chartutil.ProcessDependenciesWithMerge(c, copyValues(values)); err != nil {
		return checked, fmt.Errorf("%w: %w", ErrInvalidValues, err)
	}
	var texts []named
	seen := map[string]bool{} // a subchart may be used under several names
	for _, crd := range c.CRDObjects() {
		if text := string(crd.File.Data); !seen[text] {
			seen[text] = true
			texts = append(texts, named{crd.Filename, text})
			checked.CRDs = append(checked.CRDs, CRD{crd.Filename, crd.File.Data})
		}
	}
	return checked, check(texts)
}

// check rejects manifests that take much memory to parse, which Helm does several times.
func check(texts []named) error {
	total, most := 0, 0
	for _, t := range texts {
		total += len(t.text)
		most += 2 * expansion.Nodes([]byte(t.text))
	}
	if total > maxManifestBytes {
		return fmt.Errorf("%w: manifests take %d bytes, and the limit is %d", ErrRender, total, maxManifestBytes)
	}
	values := 0
	for _, t := range texts {
		if IsNotes(t.name) || most <= maxManifestValues && !strings.Contains(t.text, "*") {
			continue
		}
		for _, document := range releaseutil.SplitManifests(t.text) {
			if err := expansion.Text([]byte(document), expansion.Limits{}); err != nil {
				return fmt.Errorf("%w: %s: %w", ErrRender, t.name, err)
			}
			if most <= maxManifestValues {
				continue
			}
			var node yaml.Node
			if err := yaml.Unmarshal([]byte(document), &node); err != nil {
				return fmt.Errorf("%w: %s: %w", ErrRender, t.name, err)
			}
			if values += nodesIn(&node); values > maxManifestValues {
				return fmt.Errorf("%w: %s: manifests hold too many values, and the limit is %d", ErrRender, t.name, maxManifestValues)
			}
		}
	}
	return nil
}

// nodesIn counts a value and everything in it.
func nodesIn(n *yaml.Node) int {
	count := 1
	for _, child := range n.Content {
		count += nodesIn(child)
	}
	return count
}
