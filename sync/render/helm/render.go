package helm

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/sync/manifest"
)

// DefaultKubeVersion is a version of the line that this program is made for. Helm's own default is
// years old.
const DefaultKubeVersion = "v1.36.0"

// Options set what templates see in addition to the values.
type Options struct {
	// ReleaseName and Namespace are .Release.Name and .Release.Namespace.
	ReleaseName, Namespace string
	// Values are merged over those of the chart by Helm's rules. They are data: template syntax in
	// them is left as it is, unless the chart itself passes it to `tpl`.
	Values map[string]any
	// KubeVersion is .Capabilities.KubeVersion, such as v1.30.1. Default: DefaultKubeVersion.
	KubeVersion string
	// APIVersions is .Capabilities.APIVersions: groups with versions, and those with kinds.
	// Default: those of Kubernetes itself.
	APIVersions []string
	// Capabilities are .Capabilities as a whole; nil for what KubeVersion and APIVersions say.
	Capabilities *chartutil.Capabilities
	// Revision of the release, from 1; a revision above 1 is an upgrade. Default: 1.
	Revision int
	// Stamp is applied to every object except hooks and CRDs.
	Stamp Stamp
	// Cluster is where the template function lookup reads; nil if it finds nothing.
	Cluster *rest.Config
	// Time is how long the chart may be rendered, without the time that it waits for others. In this
	// process, only the context bounds that. Default: up to the renderer, which may also allow less.
	Time time.Duration
}

// Result is what a chart renders to.
type Result struct {
	// Objects in the order in which Helm installs them. File is the template; the line is not known.
	Objects []manifest.Object
	// Hooks are the objects with a hook annotation, in no order of execution.
	Hooks []manifest.Object
	// CRDs are from the crds folders of the chart and of its subcharts; Helm does not render them.
	CRDs []manifest.Object
	// Notes are those of the chart itself, not of its subcharts.
	Notes string
	// Warnings list what was not checked.
	Warnings []string
}

// Render renders a chart in this process. It returns ErrInvalidValues or ErrRender, or the error of
// ctx. The chart is not changed.
//
// A template cannot be interrupted: if ctx ends first, Render returns, and the rendering continues
// in the background until it is done.
func Render(ctx context.Context, c *chart.Chart, o Options) (*Result, error) {
	return inBackground(ctx, c, func() (*Result, error) {
		rendered, processed, err := templates(c, o, lookupOf(ctx, o.Cluster))
		if err != nil {
			return nil, err
		}
		var crds []CRD
		for _, crd := range processed.CRDObjects() {
			crds = append(crds, CRD{Name: crd.Filename, Data: crd.File.Data})
		}
		return rendered.Objects(processed, crds, o.Stamp)
	})
}

// Here renders charts in this process, with the same caveat as Render.
type Here struct{}

// Render renders the templates of a chart. It returns ErrInvalidValues or ErrRender, or the error of
// ctx. The chart is not changed.
func (Here) Render(ctx context.Context, c *chart.Chart, o Options) (*Rendered, error) {
	return inBackground(ctx, c, func() (*Rendered, error) { return Templates(c, o, lookupOf(ctx, o.Cluster)) })
}

// Validate does what the function of that name does, unless ctx ends first.
func (Here) Validate(ctx context.Context, c *chart.Chart, values map[string]any) (*Checked, error) {
	return inBackground(ctx, c, func() (*Checked, error) { return Validate(c, values) })
}

// inBackground returns what do returns, or the error of ctx if that ends first. A panic is an error:
// charts are written by others, and no caller could recover the panic of another goroutine.
func inBackground[T any](ctx context.Context, c *chart.Chart, do func() (T, error)) (T, error) {
	type answer struct {
		result T
		err    error
	}
	done := make(chan answer, 1)
	go func() {
		result, err := guarded(c, do)
		done <- answer{result, err}
	}()
	select {
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("render chart %s: %w", c.Name(), ctx.Err())
	case a := <-done:
		return a.result, a.err
	}
}

// guarded turns a panic into an error.
func guarded[T any](c *chart.Chart, do func() (T, error)) (result T, err error) {
	defer func() {
		if crash := recover(); crash != nil {
			err = fmt.Errorf("%w: chart %s: helm failed unexpectedly: %v", ErrRender, c.Name(), crash)
		}
	}()
	return do()
}

// Objects parses what was rendered of a chart. crds are those of Checked.
func (r *Rendered) Objects(c *chart.Chart, crds []CRD, stamp Stamp) (*Result, error) {
	files := maps.Clone(r.Files)
	result := &Result{Notes: takeNotes(c, files), Warnings: r.Warnings}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRender, err)
	}
	for _, m := range manifests {
		// Helm ends each manifest with a line break, which a block scalar at its end may count as
		// its own.
		stamped, err := stamp.Run(bytes.NewBufferString(m.Content + "\n"))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		if result.Objects, err = appendObjects(result.Objects, m.Name, stamped.Bytes()); err != nil {
			return nil, err
		}
	}
	for _, h := range hooks {
		if result.Hooks, err = appendObjects(result.Hooks, h.Path, []byte(h.Manifest)); err != nil {
			return nil, err
		}
	}
	for _, crd := range crds {
		if result.CRDs, err = appendObjects(result.CRDs, crd.Name, crd.Data); err != nil {
			return nil, err
		}
	}
	return result, nil
}

func (o Options) release() chartutil.ReleaseOptions {
	revision := max(o.Revision, 1)
	return chartutil.ReleaseOptions{
		Name:      o.ReleaseName,
		Namespace: o.Namespace,
		Revision:  revision,
		IsInstall: revision == 1,
		IsUpgrade: revision > 1,
	}
}

// capabilities returns those of the cluster. They must satisfy the Kubernetes version that c requires.
func (o Options) capabilities(c *chart.Chart) (*chartutil.Capabilities, error) {
	capabilities := o.Capabilities
	if capabilities == nil {
		var err error
		if capabilities, err = o.simulated(); err != nil {
			return nil, err
		}
	}
	wanted, have := c.Metadata.KubeVersion, capabilities.KubeVersion.Version
	if wanted != "" && !chartutil.IsCompatibleRange(wanted, have) {
		return nil, fmt.Errorf("%w: chart %s requires Kubernetes %s, and the cluster has %s", ErrRender, c.Name(), wanted, have)
	}
	return capabilities, nil
}

// simulated returns the capabilities of a cluster that is not there.
func (o Options) simulated() (*chartutil.Capabilities, error) {
	capabilities := chartutil.DefaultCapabilities.Copy()
	version, err := chartutil.ParseKubeVersion(cmp.Or(o.KubeVersion, DefaultKubeVersion))
	if err != nil {
		return nil, fmt.Errorf("%w: Kubernetes version %q: %w", ErrRender, o.KubeVersion, err)
	}
	capabilities.KubeVersion = *version
	if len(o.APIVersions) > 0 {
		capabilities.APIVersions = slices.Clone(o.APIVersions)
	}
	return capabilities, nil
}

// takeNotes removes the notes of all charts from the rendered files, and returns those of c.
func takeNotes(c *chart.Chart, files map[string]string) string {
	own := files[path.Join(c.ChartFullPath(), "templates", notesFile)]
	maps.DeleteFunc(files, func(name, _ string) bool { return IsNotes(name) })
	return own
}

// notesFile is how the names of notes end.
const notesFile = "NOTES.txt"

// IsNotes reports whether a template with that path renders to notes.
func IsNotes(name string) bool { return strings.HasSuffix(name, notesFile) }
