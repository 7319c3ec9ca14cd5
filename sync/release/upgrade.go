package release

import (
	"context"

	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"

	"waybill.dev/waybill/sync/render/helm"
)

// upgrade creates another revision. If it fails, the last good one stays what it was.
func upgrade(ctx context.Context, s *session, _ Decision) (Result, error) {
	return s.revise(ctx, "upgrade", func(cfg *action.Configuration, labels map[string]string) (*helmrelease.Release, error) {
		return s.runUpgrade(action.NewUpgrade(cfg), labels)
	})
}

// runUpgrade runs Helm's upgrade to what is desired.
func (s *session) runUpgrade(run *action.Upgrade, labels map[string]string) (*helmrelease.Release, error) {
	run.Namespace = s.id.Namespace
	run.Timeout = s.desired.Options.timeout()
	run.DisableHooks = s.desired.Options.DisableHooks
	run.ResetValues = true // else empty values would be those of the last revision
	run.SkipSchemaValidation = true
	run.Labels = labels
	run.PostRenderer = s.id.Stamp()
	return run.RunWithContext(context.Background(), s.id.Name, helm.Clone(s.desired.Chart), helm.MergeValues(s.desired.Values))
}
