package release

import (
	"context"

	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"
)

// helmAction runs an action of Helm that makes a revision, whose record gets the labels.
type helmAction func(cfg *action.Configuration, labels map[string]string) (*helmrelease.Release, error)

// revise makes another revision of the release, and takes away what is no longer wanted of earlier
// ones. On failure the revision is recorded as failed.
func (s *session) revise(ctx context.Context, what string, run helmAction) (Result, error) {
	made, err := s.make(ctx, run)
	if err == nil {
		err = s.settle(made)
	}
	return s.outcome(made, s.failed(what, err))
}

// make does what must come before a revision is rendered, and has Helm make it: it reads what earlier
// ones may have left, and applies the CRDs.
func (s *session) make(ctx context.Context, run helmAction) (*helmrelease.Release, error) {
	if err := s.readLeftovers(); err != nil {
		return nil, err
	}
	if err := s.applyCRDs(ctx); err != nil {
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
	return run(cfg, s.id.recordLabels(newest.Number+1, digest))
}

// outcome returns the result that describes made, along with err.
func (s *session) outcome(made *helmrelease.Release, err error) (Result, error) {
	if err == nil {
		return s.result(made)
	}
	result, _ := s.result(made)
	return result, err
}
