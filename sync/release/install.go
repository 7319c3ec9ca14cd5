package release

import (
	"context"

	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"

	"waybill.dev/waybill/sync/render/helm"
)

// install creates a release. An earlier install that failed is not torn down: what it created is
// brought to the desired state, and what is no longer wanted is deleted. On failure the release is
// recorded as failed.
func install(ctx context.Context, s *session, _ Decision) (Result, error) {
	if err := s.readLeftovers(); err != nil {
		return Result{}, s.failed("install", err)
	}
	made, err := s.install(ctx)
	if err == nil {
		err = s.settle(made)
	}
	return s.outcome(made, s.failed("install", err))
}

// install runs Helm's install action.
func (s *session) install(ctx context.Context) (*helmrelease.Release, error) {
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	cfg, err := s.configuration()
	if err != nil {
		return nil, err
	}
	digest, err := s.desired.Digest()
	if err != nil {
		return nil, err
	}
	newest, _ := s.observed.newest()
	run := action.NewInstall(cfg)
	run.ReleaseName = s.id.Name
	run.Namespace = s.id.Namespace
	run.Timeout = s.desired.Options.timeout()
	run.DisableHooks = s.desired.Options.DisableHooks
	run.Replace = newest.Number > 0
	run.SkipCRDs = true // done by prepare
	run.SkipSchemaValidation = true
	run.Labels = s.id.recordLabels(newest.Number+1, digest)
	run.PostRenderer = s.id.Stamp()
	return run.Run(helm.Clone(s.desired.Chart), helm.MergeValues(s.desired.Values))
}

// prepare does what must come before rendering: it validates the values and applies the CRDs.
func (s *session) prepare(ctx context.Context) error {
	warnings, err := helm.ValidateValues(s.desired.Chart, s.desired.Values)
	s.warnings = warnings
	if err != nil {
		return err
	}
	return s.applyCRDs(ctx)
}

// outcome returns the result that describes made, along with err.
func (s *session) outcome(made *helmrelease.Release, err error) (Result, error) {
	if err == nil {
		return s.result(made)
	}
	result, _ := s.result(made)
	return result, err
}
