package isolated

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/api/resource"

	"waybill.dev/waybill/sync/render/helm"
)

const (
	// mostChart bounds what a process may say about a chart: its manifests and values, which package helm
	// bounds, and some lookups.
	mostChart = 32 << 20
	// keptChart is how large a chart may be for a process to keep it for the next task.
	keptChart = 8 << 20
)

// Render renders the templates of a chart, as helm.Templates does, with the lookups of the cluster that
// the options name. In addition, a chart that takes more time or memory than it may, or fills its stack,
// is an ErrRender. If ctx ends first, so does the rendering, and the error says so; other errors are
// those of the cluster, or internal.
func (b *Builder) Render(ctx context.Context, c *chart.Chart, o helm.Options) (*helm.Rendered, error) {
	r := &rendering{chart: c, options: o, limit: b.limit(o.Time)}
	if err := b.render(ctx, r); err != nil {
		return nil, err
	}
	return &helm.Rendered{Chart: r.recorded, Files: r.files, Warnings: r.warnings}, nil
}

// Validate checks values and CRDs as helm.Validate does. Its errors are those of Render.
func (b *Builder) Validate(ctx context.Context, c *chart.Chart, values map[string]any) (*helm.Checked, error) {
	r := &rendering{chart: c, options: helm.Options{Values: values}, validate: true, limit: b.time}
	err := b.render(ctx, r)
	return &helm.Checked{CRDs: r.crds, Warnings: r.warnings}, err
}

// render renders a chart, and explains why that was ended.
func (b *Builder) render(ctx context.Context, r *rendering) error {
	err := b.do(ctx, r)
	var failed *fault
	switch {
	case errors.As(err, &failed) && r.failure != nil:
		return &lookupError{text: failed.Text, err: r.failure}
	case errors.Is(err, errMemory):
		return fmt.Errorf("%w: %s takes more memory than it may (%s); look for templates that repeat a text, loop over a large number or call "+
			"themselves, and for values that make them do so; --render-memory of waybill-sync is the limit",
			helm.ErrRender, r, resource.NewQuantity(b.memory, resource.BinarySI))
	case errors.Is(err, errTime):
		return fmt.Errorf("%w: %s takes longer than it may (%s); look for templates that loop over a large number, and for values that make "+
			"them do so", helm.ErrRender, r, r.limit)
	case errors.Is(err, errStack):
		return fmt.Errorf("%w: %s fills the stack; look for templates and values that call themselves, with tpl or include", helm.ErrRender, r)
	case err != nil && failed == nil:
		return fmt.Errorf("%s: %w", r, err)
	}
	return err
}

// lookupError is what the renderer said about a lookup that failed, and why it did.
type lookupError struct {
	text string
	err  error
}

func (e *lookupError) Error() string { return e.text }
func (e *lookupError) Unwrap() error { return e.err }

// rendering is a chart to render, or values to check.
type rendering struct {
	chart    *chart.Chart
	options  helm.Options
	validate bool
	limit    time.Duration

	lookup   helm.Lookup
	files    map[string]string
	recorded *chart.Chart
	crds     []helm.CRD
	warnings []string
	// failure is the first error of a lookup that is not about what the templates asked for.
	failure error
}

// String says what is done, to which chart.
func (r *rendering) String() string {
	if r.validate {
		return "checking the values of chart " + named(r.chart)
	}
	return "rendering chart " + named(r.chart)
}

// named returns the name and the version of a chart.
func named(c *chart.Chart) string {
	if c.Metadata == nil {
		return "without a name"
	}
	return c.Metadata.Name + " " + c.Metadata.Version
}

func (r *rendering) most() int64         { return mostChart }
func (r *rendering) time() time.Duration { return r.limit }

func (r *rendering) request(p *process) (request, error) {
	r.files, r.recorded = map[string]string{}, helm.Recorded(r.chart, r.chart.Metadata, r.chart.Values)
	r.crds, r.warnings, r.failure, r.lookup = nil, nil, nil, nil
	o := r.options
	values, err := packMap(o.Values)
	if err != nil {
		return request{}, err
	}
	wanted := &chartRequest{
		Validate: r.validate, ReleaseName: o.ReleaseName, Namespace: o.Namespace, Values: values, KubeVersion: o.KubeVersion,
		APIVersions: o.APIVersions, Capabilities: o.Capabilities, Revision: o.Revision, Lookup: o.Cluster != nil,
	}
	if p.chart == r.chart {
		return request{Chart: wanted}, nil
	}
	if wanted.Chart, err = packChart(r.chart); err != nil {
		return request{}, err
	}
	if p.chart = nil; wanted.Chart.size() <= keptChart {
		p.chart, wanted.Keep = r.chart, true
	}
	return request{Chart: wanted}, nil
}

func (r *rendering) take(t turn) error {
	r.warnings = append(r.warnings, t.Warnings...)
	if t.Text != nil {
		r.files[t.Text.Name] = t.Text.Text
	}
	if t.CRD != nil {
		r.crds = append(r.crds, *t.CRD)
	}
	if t.Recorded == nil {
		return nil
	}
	metadata := &chart.Metadata{}
	if err := json.Unmarshal(t.Recorded.Metadata, metadata); err != nil {
		return fmt.Errorf("decode the metadata of the chart: %w", err)
	}
	r.recorded = helm.Recorded(r.chart, metadata, t.Recorded.Values.unpackMap())
	return nil
}

// answer answers a lookup.
func (r *rendering) answer(ctx context.Context, t turn) (reply, error) {
	if t.Lookup == nil || r.options.Cluster == nil {
		return reply{}, errors.ErrUnsupported
	}
	if r.lookup == nil {
		r.lookup = helm.LookupIn(ctx, r.options.Cluster)
	}
	pages, err := r.lookup(*t.Lookup)
	if err != nil && !errors.Is(err, helm.ErrRender) && r.failure == nil {
		r.failure = err
	}
	return reply{Pages: pages, Fault: faultOf(err)}, nil
}
