package isolated

import (
	"encoding/gob"
	"encoding/json"
	"fmt"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"

	"waybill.dev/waybill/sync/render/helm"
)

// chartRequest is a chart to render.
type chartRequest struct {
	// Chart is nil for the one of the request before, which said to keep it.
	Chart *chartData
	Keep  bool
	// Validate checks the values, and renders nothing.
	Validate bool

	// The others are those of helm.Options.
	ReleaseName, Namespace string
	Values                 map[string]any
	KubeVersion            string
	APIVersions            []string
	Capabilities           *chartutil.Capabilities
	Revision               int
	Lookup                 bool
}

// options returns the options of a request.
func (r *chartRequest) options() helm.Options {
	return helm.Options{
		ReleaseName: r.ReleaseName, Namespace: r.Namespace, Values: unpackMap(r.Values), KubeVersion: r.KubeVersion,
		APIVersions: r.APIVersions, Capabilities: r.Capabilities, Revision: r.Revision,
	}
}

// text is what a template was rendered to.
type text struct{ Name, Text string }

// recorded is what Helm records of a chart other than it is.
type recorded struct {
	Metadata []byte
	Values   map[string]any
}

// chartData is a chart.Chart.
type chartData struct {
	// Metadata and Lock are JSON.
	Metadata, Lock   []byte
	Templates, Files []chart.File
	Values           map[string]any
	Schema           []byte
	Dependencies     []*chartData
}

func packChart(c *chart.Chart) (d *chartData, err error) {
	d = &chartData{Schema: c.Schema, Templates: filesOf(c.Templates), Files: filesOf(c.Files)}
	if d.Metadata, err = json.Marshal(c.Metadata); err != nil {
		return nil, fmt.Errorf("%w: encode metadata: %w", helm.ErrRender, err)
	}
	if d.Lock, err = json.Marshal(c.Lock); err != nil {
		return nil, fmt.Errorf("%w: encode lock: %w", helm.ErrRender, err)
	}
	if d.Values, err = packMap(c.Values); err != nil {
		return nil, err
	}
	for _, sub := range c.Dependencies() {
		packed, err := packChart(sub)
		if err != nil {
			return nil, err
		}
		d.Dependencies = append(d.Dependencies, packed)
	}
	return d, nil
}

func filesOf(files []*chart.File) []chart.File {
	found := make([]chart.File, 0, len(files))
	for _, f := range files {
		if f != nil {
			found = append(found, *f)
		}
	}
	return found
}

// size returns about how many bytes a chart takes.
func (d *chartData) size() int {
	total := len(d.Metadata) + len(d.Schema) + sizeOf(d.Values)
	for _, files := range [][]chart.File{d.Templates, d.Files} {
		for _, f := range files {
			total += len(f.Data)
		}
	}
	for _, sub := range d.Dependencies {
		total += sub.size()
	}
	return total
}

// unpack returns the chart.
func (d *chartData) unpack() (*chart.Chart, error) {
	c := &chart.Chart{Schema: d.Schema, Templates: pointers(d.Templates), Files: pointers(d.Files), Values: unpackMap(d.Values)}
	if err := json.Unmarshal(d.Metadata, &c.Metadata); err != nil {
		return nil, fmt.Errorf("%w: decode metadata: %w", helm.ErrRender, err)
	}
	if err := json.Unmarshal(d.Lock, &c.Lock); err != nil {
		return nil, fmt.Errorf("%w: decode lock: %w", helm.ErrRender, err)
	}
	for _, sub := range d.Dependencies {
		unpacked, err := sub.unpack()
		if err != nil {
			return nil, err
		}
		c.AddDependency(unpacked)
	}
	return c, nil
}

func pointers(files []chart.File) []*chart.File {
	found := make([]*chart.File, len(files))
	for i := range files {
		found[i] = &files[i]
	}
	return found
}

// null takes the place of nil among values: gob has none.
type null struct{}

// registerValues tells gob which types values have.
func registerValues() {
	for _, value := range []any{null{}, map[string]any{}, []any{}, json.Number("")} {
		gob.Register(value)
	}
}

// packMap returns a copy of values that gob can encode. Their types are those of YAML and JSON.
func packMap(values map[string]any) (map[string]any, error) {
	packed := make(map[string]any, len(values))
	for key, value := range values {
		var err error
		if packed[key], err = pack(value); err != nil {
			return nil, err
		}
	}
	return packed, nil
}

func pack(value any) (any, error) {
	switch v := value.(type) {
	case nil:
		return null{}, nil
	case map[string]any:
		return packMap(v)
	case []any:
		packed := make([]any, len(v))
		for i := range v {
			var err error
			if packed[i], err = pack(v[i]); err != nil {
				return nil, err
			}
		}
		return packed, nil
	case string, bool, int, int64, uint64, float64, json.Number:
		return v, nil
	default:
		return nil, fmt.Errorf("%w: a value of type %T is not supported", helm.ErrInvalidValues, v)
	}
}

// unpackMap undoes packMap, in place.
func unpackMap(values map[string]any) map[string]any {
	for key, value := range values {
		values[key] = unpack(value)
	}
	return values
}

func unpack(value any) any {
	switch v := value.(type) {
	case null:
		return nil
	case map[string]any:
		return unpackMap(v)
	case []any:
		if v == nil {
			return []any{} // gob does not tell the two apart
		}
		for i := range v {
			v[i] = unpack(v[i])
		}
		return v
	default:
		return v
	}
}

// sizeOf returns about how many bytes a value takes.
func sizeOf(value any) int {
	total := 16
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			total += len(key) + sizeOf(inner)
		}
	case []any:
		for _, inner := range v {
			total += sizeOf(inner)
		}
	case string:
		total += len(v)
	}
	return total
}
