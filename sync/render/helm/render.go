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

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/api/expansion"
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
	// them is left as it is, unless the chart itself passes it to `tpl` (C26, C33, K48).
	Values map[string]any
	// KubeVersion is .Capabilities.KubeVersion, such as v1.30.1. Default: DefaultKubeVersion.
	KubeVersion string
	// APIVersions is .Capabilities.APIVersions: groups with versions, and those with kinds.
	// Default: those of Kubernetes itself.
	APIVersions []string
	// Revision of the release, from 1; a revision above 1 is an upgrade. Default: 1.
	Revision int
	// Stamp is applied to every object except hooks and CRDs.
	Stamp Stamp
	// Cluster is where the template function lookup reads; nil if it finds nothing.
	Cluster *rest.Config
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

// Render renders a chart. It returns ErrInvalidValues or ErrRender, or the error of ctx. The chart
// is not changed.
//
// A template cannot be interrupted: if ctx ends first, Render returns, and the rendering continues
// in the background until it is done.
func Render(ctx context.Context, c *chart.Chart, o Options) (*Result, error) {
	type answer struct {
		result *Result
		err    error
	}
	done := make(chan answer, 1)
	go func() {
		result, err := guarded(c, o)
		done <- answer{result, err}
	}()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("render chart %s: %w", c.Name(), ctx.Err())
	case a := <-done:
		return a.result, a.err
	}
}

// guarded turns a panic into an error: charts are written by others, and no caller could recover the
// panic of another goroutine.
func guarded(c *chart.Chart, o Options) (result *Result, err error) {
	defer func() {
		if crash := recover(); crash != nil {
			err = fmt.Errorf("%w: chart %s: helm failed unexpectedly: %v", ErrRender, c.Name(), crash)
		}
	}()
	return render(Clone(c), copyValues(o.Values), o)
}

func render(c *chart.Chart, values map[string]any, o Options) (*Result, error) {
	warnings, err := ValidateValues(c, values)
	if err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidValues, err)
	}
	capabilities, err := o.capabilities(c)
	if err != nil {
		return nil, err
	}
	all, err := chartutil.ToRenderValuesWithSchemaValidation(c, values, o.release(), capabilities, true)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidValues, err)
	}
	templates := engine.Engine{}
	if o.Cluster != nil {
		templates = engine.New(o.Cluster)
	}
	files, err := templates.Render(c, all)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRender, err)
	}
	result := &Result{Notes: takeNotes(c, files), Warnings: warnings}
	if err := checkSize(files); err != nil {
		return nil, err
	}
	if err := checkAliases(files); err != nil {
		return nil, err
	}
	hooks, manifests, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRender, err)
	}
	for _, m := range manifests {
		// Helm ends each manifest with a line break, which a block scalar at its end may count as
		// its own.
		stamped, err := o.Stamp.Run(bytes.NewBufferString(m.Content + "\n"))
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
	for _, crd := range c.CRDObjects() {
		if result.CRDs, err = appendObjects(result.CRDs, crd.Filename, crd.File.Data); err != nil {
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

// capabilities returns those of the simulated cluster. They must satisfy the Kubernetes version
// that c requires.
func (o Options) capabilities(c *chart.Chart) (*chartutil.Capabilities, error) {
	capabilities := chartutil.DefaultCapabilities.Copy()
	version, err := chartutil.ParseKubeVersion(cmp.Or(o.KubeVersion, DefaultKubeVersion))
	if err != nil {
		return nil, fmt.Errorf("%w: Kubernetes version %q: %w", ErrRender, o.KubeVersion, err)
	}
	capabilities.KubeVersion = *version
	if len(o.APIVersions) > 0 {
		capabilities.APIVersions = slices.Clone(o.APIVersions)
	}
	wanted, have := c.Metadata.KubeVersion, capabilities.KubeVersion.Version
	if wanted != "" && !chartutil.IsCompatibleRange(wanted, have) {
		return nil, fmt.Errorf("%w: chart %s wants Kubernetes %s, and this is %s", ErrRender, c.Name(), wanted, have)
	}
	return capabilities, nil
}

// takeNotes removes the notes of all charts from the rendered files, and returns those of c.
func takeNotes(c *chart.Chart, files map[string]string) string {
	const notesFile = "NOTES.txt"
	own := files[path.Join(c.ChartFullPath(), "templates", notesFile)]
	for name := range files {
		if strings.HasSuffix(name, notesFile) {
			delete(files, name)
		}
	}
	return own
}

// checkAliases rejects manifests that would not fit into memory once they are decoded, which Helm
// does as soon as it sorts them.
func checkAliases(files map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.Contains(files[name], "*") {
			continue
		}
		for _, document := range releaseutil.SplitManifests(files[name]) {
			if err := expansion.Text([]byte(document), expansion.Limits{}); err != nil {
				return fmt.Errorf("%w: %s: %w", ErrRender, name, err)
			}
		}
	}
	return nil
}

func checkSize(files map[string]string) error {
	total := 0
	for _, text := range files {
		total += len(text)
	}
	if total > maxManifestBytes {
		return fmt.Errorf("%w: manifests take %d bytes, and the limit is %d", ErrRender, total, maxManifestBytes)
	}
	return nil
}
