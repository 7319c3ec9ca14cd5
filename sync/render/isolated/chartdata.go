package isolated

import (
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
	Values                 packed
	KubeVersion            string
	APIVersions            []string
	Capabilities           *chartutil.Capabilities
	Revision               int
	Lookup                 bool
}

// options returns the options of a request.
func (r *chartRequest) options() helm.Options {
	return helm.Options{
		ReleaseName: r.ReleaseName, Namespace: r.Namespace, Values: r.Values.unpackMap(), KubeVersion: r.KubeVersion,
		APIVersions: r.APIVersions, Capabilities: r.Capabilities, Revision: r.Revision,
	}
}

// text is what a template was rendered to.
type text struct{ Name, Text string }

// recorded is what Helm records of a chart other than it is.
type recorded struct {
	Metadata []byte
	Values   packed
}

// chartData is a chart.Chart.
type chartData struct {
	// Metadata and Lock are JSON.
	Metadata, Lock   []byte
	Templates, Files []chart.File
	Values           packed
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
	total := len(d.Metadata) + len(d.Schema) + d.Values.size()
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
	c := &chart.Chart{Schema: d.Schema, Templates: pointers(d.Templates), Files: pointers(d.Files), Values: d.Values.unpackMap()}
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
