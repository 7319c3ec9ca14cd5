package release

import (
	"context"

	helmrelease "helm.sh/helm/v3/pkg/release"
)

// unlock records a revision as failed that was left pending by a process that died. It touches
// nothing else: the next action brings the objects to the desired state.
func unlock(_ context.Context, s *session, _ Decision) (Result, error) {
	newest, _ := s.observed.newest()
	pending, err := s.store.Get(s.store.key(newest.Number))
	if err != nil {
		return Result{}, s.failed("unlock", err)
	}
	pending.SetStatus(helmrelease.StatusFailed, "The action was interrupted before it ended")
	if err := s.store.Update(s.store.key(newest.Number), pending); err != nil {
		return Result{}, s.failed("unlock", err)
	}
	return Result{}, nil
}
