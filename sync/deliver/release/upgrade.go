package release

import (
	"context"

	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"
)

// upgrade creates another revision. If it fails, the last good one stays what it was.
func upgrade(ctx context.Context, s *session, _ Decision) (Result, error) {
	return s.revise(ctx, "upgrade", func(cfg *action.Configuration, labels map[string]string) (*helmrelease.Release, error) {
		return s.runUpgrade(ctx, action.NewUpgrade(cfg), labels)
	})
}

// runUpgrade runs Helm's upgrade to what is desired.
func (s *session) runUpgrade(ctx context.Context, run *action.Upgrade, labels map[string]string) (*helmrelease.Release, error) {
	newest, _ := s.observed.newest()
	c, values, err := s.render(ctx, newest.Number+1)
	if err != nil {
		return nil, err
	}
	run.Namespace = s.id.Namespace
	run.Timeout = s.desired.Options.timeout()
	run.DisableHooks = s.desired.Options.DisableHooks
	run.ResetValues = true // else empty values would be those of the last revision
	run.SkipSchemaValidation = true
	run.Labels = labels
	run.PostRenderer = s.sorted
	s.client.tries = true
	return run.RunWithContext(context.Background(), s.id.Name, c, values)
}
