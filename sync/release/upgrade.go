package release

import (
	"context"

	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"

	"waybill.dev/waybill/sync/render/helm"
)

// upgrade creates another revision. On failure it is recorded as failed, and the last good one
// stays what it was.
func upgrade(ctx context.Context, s *session, _ Decision) (Result, error) {
	if err := s.readLeftovers(); err != nil {
		return Result{}, s.failed("upgrade", err)
	}
	made, err := s.upgrade(ctx)
	if err == nil {
		err = s.settle(made)
	}
	return s.outcome(made, s.failed("upgrade", err))
}

// upgrade runs Helm's upgrade action.
func (s *session) upgrade(ctx context.Context) (*helmrelease.Release, error) {
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
	run := action.NewUpgrade(cfg)
	run.Namespace = s.id.Namespace
	run.Timeout = s.desired.Options.timeout()
	run.DisableHooks = s.desired.Options.DisableHooks
	run.ResetValues = true // else empty values would be those of the last revision
	run.SkipSchemaValidation = true
	run.Labels = s.id.recordLabels(newest.Number+1, digest)
	run.PostRenderer = s.id.Stamp()
	return run.RunWithContext(context.Background(), s.id.Name, helm.Clone(s.desired.Chart), helm.MergeValues(s.desired.Values))
}
