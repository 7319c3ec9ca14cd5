package release

import (
	"context"
	"errors"

	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"
)

// Rollback gives a revision up that was installed, and turned out not to work: the last one before it that was, is installed
// again as a revision of its own; where there is none, the release is uninstalled. why is recorded with the revision. This is
// what Atomic means once objects do not become healthy in time. The next Ensure takes the input up again: its caller decides
// when.
func (e *Engine) Rollback(ctx context.Context, t Target, id Identity, o Options, why string) (Result, error) {
	observed, err := e.observeOurs(ctx, t, id)
	if err != nil {
		return Result{}, err
	}
	j := job{engine: e, target: t, desired: Desired{Identity: id, Options: o}, observed: observed}
	return inSession(ctx, j, func(ctx context.Context, s *session) (Result, error) {
		if err := s.giveUp(why); err != nil {
			return Result{}, s.failed("roll back", err)
		}
		if _, ok := s.fallback(); !ok {
			return s.takeAway(ctx)
		}
		return s.goBack()
	})
}

// takeAway uninstalls what an install has made.
func (s *session) takeAway(ctx context.Context) (Result, error) {
	_, err := s.uninstall(ctx)
	return s.outcome(nil, s.failed("uninstall", err))
}

// goBack installs the last good revision again and describes it.
func (s *session) goBack() (Result, error) {
	if err := s.failed("roll back", s.rollback()); err != nil {
		return Result{}, err
	}
	restored, err := s.store.Get(s.store.key(s.store.newest()))
	if err != nil {
		return Result{}, s.failed("roll back", err)
	}
	return s.result(restored)
}

// giveUp records the newest revision as failed.
func (s *session) giveUp(why string) error {
	newest, _ := s.observed.newest()
	key := s.store.key(newest.Number)
	current, err := s.store.Get(key)
	if err != nil {
		return err
	}
	current.SetStatus(helmrelease.StatusFailed, why)
	return s.store.Update(key, current)
}

// errNoGoodRevision: nothing to go back to is recorded.
var errNoGoodRevision = errors.New("no earlier revision was installed completely")

// rollback runs Helm's action, to the last good revision.
func (s *session) rollback() error {
	good, ok := s.fallback()
	if !ok {
		return errNoGoodRevision
	}
	cfg, err := s.configuration()
	if err != nil {
		return err
	}
	run := action.NewRollback(cfg)
	run.Version = good.Number
	run.Timeout = s.desired.Options.timeout()
	run.DisableHooks = s.desired.Options.DisableHooks
	run.MaxHistory = s.desired.Options.historyLimit()
	return run.Run(s.id.Name)
}

// fallback is the last revision before the newest that was installed completely.
func (s *session) fallback() (Revision, bool) {
	if len(s.observed.Revisions) == 0 {
		return Revision{}, false
	}
	earlier := Observed{Revisions: s.observed.Revisions[:len(s.observed.Revisions)-1]}
	return earlier.lastGood()
}
