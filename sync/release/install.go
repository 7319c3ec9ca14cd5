package release

import (
	"context"

	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"
)

// install creates a release. An earlier install that failed is not torn down: what it created is
// brought to the desired state, and what is no longer wanted is deleted.
func install(ctx context.Context, s *session, _ Decision) (Result, error) {
	return s.revise(ctx, "install", func(cfg *action.Configuration, labels map[string]string) (*helmrelease.Release, error) {
		return s.runInstall(ctx, action.NewInstall(cfg), labels)
	})
}

// runInstall runs Helm's install of what is desired.
func (s *session) runInstall(ctx context.Context, run *action.Install, labels map[string]string) (*helmrelease.Release, error) {
	c, values, err := s.render(ctx, 1)
	if err != nil {
		return nil, err
	}
	newest, _ := s.observed.newest()
	run.ReleaseName = s.id.Name
	run.Namespace = s.id.Namespace
	run.Timeout = s.desired.Options.timeout()
	run.DisableHooks = s.desired.Options.DisableHooks
	run.Replace = newest.Number > 0
	run.SkipCRDs = true // revise has applied them
	run.SkipSchemaValidation = true
	run.Labels = labels
	run.PostRenderer = s.id.Stamp()
	return run.Run(c, values)
}
