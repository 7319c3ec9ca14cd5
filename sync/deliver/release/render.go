package release

import (
	"context"
	"errors"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"

	"waybill.dev/waybill/sync/render/helm"
)

// Renderer renders charts. Its errors are those of package helm, that of ctx, or may be gone at the next
// try.
type Renderer interface {
	// Render renders the templates of a chart, which is not changed.
	Render(ctx context.Context, c *chart.Chart, o helm.Options) (*helm.Rendered, error)
	// Validate checks values against the schema of a chart, and returns the CRDs of what they enable.
	Validate(ctx context.Context, c *chart.Chart, values map[string]any) (*helm.Checked, error)
}

// errUnwanted is why a chart is not rendered to its end.
var errUnwanted = errors.New("the chart is no longer wanted")

// render renders the desired chart for a revision as Helm would, and returns what Helm gets instead of chart
// and values: of these, it makes just what was rendered. The author of a chart can make rendering take any
// time and memory, so that it is not Helm's action that does it.
func (s *session) render(ctx context.Context, revision int) (*chart.Chart, map[string]any, error) {
	err := s.client.during("rendering the chart", func() error { return s.renderChart(ctx, revision) })
	if err != nil {
		return nil, nil, err
	}
	s.warnings = s.rendered.Warnings
	s.sorted = s.engine.memo.sorted(s.rendered, s.id.Stamp())
	var values map[string]any
	s.flat, values, err = s.sorted.left(s.rendered).Flat()
	return s.flat, values, err
}

// renderChart sets rendered.
func (s *session) renderChart(ctx context.Context, revision int) error {
	return s.whileWanted(ctx, func(ctx context.Context) (err error) {
		options := helm.Options{
			ReleaseName: s.id.Name, Namespace: s.id.Namespace, Revision: revision, Capabilities: s.capabilities,
			Values: s.desired.Values, Time: s.desired.Options.timeout(),
		}
		if s.desired.Options.Lookup {
			options.Cluster = s.client.getter.config
		}
		s.rendered, err = s.engine.renderer.Render(ctx, s.desired.Chart, options)
		return err
	})
}

// validate checks values and CRDs, before anything is rendered, and returns the latter.
func (s *session) validate(ctx context.Context) (crds []helm.CRD, err error) {
	err = s.whileWanted(ctx, func(ctx context.Context) error {
		checked, err := s.engine.renderer.Validate(ctx, s.desired.Chart, s.desired.Values)
		if checked != nil {
			crds, s.warnings = checked.CRDs, checked.Warnings
		}
		return err
	})
	return crds, err
}

// waitTime bounds how long a chart may wait for others to be rendered, and be rendered.
const waitTime = 10 * time.Minute

// whileWanted has do render until the result is not wanted any more. The time of the action does not count
// meanwhile: others may have to be rendered first.
func (s *session) whileWanted(ctx context.Context, do func(context.Context) error) error {
	timed, end := context.WithTimeout(ctx, waitTime)
	defer end()
	bound, cancel := context.WithCancelCause(timed)
	defer cancel(nil)
	go func() {
		select {
		case <-s.desired.Unwanted: // never, if it is nil
			cancel(errUnwanted)
		case <-bound.Done():
		}
	}()
	var err error
	s.clock.during(func() { err = do(bound) })
	switch {
	case err == nil, errors.Is(err, helm.ErrRender), errors.Is(err, helm.ErrInvalidValues):
		return err
	case ctx.Err() == nil && errors.Is(context.Cause(bound), errUnwanted):
		return errUnwanted
	default:
		return &notRendered{err}
	}
}

// notRendered is why a chart was not rendered that is not to blame for it.
type notRendered struct{ error }

func (e *notRendered) Unwrap() error { return e.error }

// putOriginals puts chart and values into a release that Helm has made of what was rendered, so that its record
// is that of the chart.
func (s *session) putOriginals(made *helmrelease.Release) {
	if s.flat != nil && made.Chart == s.flat {
		made.Chart, made.Config = s.rendered.Chart, helm.MergeValues(s.desired.Values)
	}
}
