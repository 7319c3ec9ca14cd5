package release

import (
	"bytes"
	"context"
	"errors"

	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"

	"waybill.dev/waybill/sync/data/restore"
	"waybill.dev/waybill/sync/render/helm"
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
	checked := &claimsCheck{sorted: s.sorted, claims: s.desired.Claims}
	run.PostRenderer = checked
	made, err := run.Run(c, values)
	if checked.failure != nil {
		return nil, checked.failure // Helm adds nothing of worth
	}
	return made, err
}

// claimsCheck is a post-renderer that marks what was rendered, and fails if it does not use the claims that
// it has to use.
type claimsCheck struct {
	sorted  *sorted
	claims  []string
	failure error
}

// Run implements Helm's postrender.PostRenderer.
func (c *claimsCheck) Run(manifests *bytes.Buffer) (*bytes.Buffer, error) {
	stamped, err := c.sorted.Run(manifests)
	if err != nil || len(c.claims) == 0 {
		return stamped, err
	}
	objects, err := helm.Objects(stamped.Bytes())
	if err != nil {
		return nil, err
	}
	if unused := restore.Unused(c.claims, objects); len(unused) > 0 {
		c.failure = &Error{Reason: ReasonUnused, Err: errors.New(restore.DescribeUnused(unused))}
	}
	return stamped, c.failure
}
