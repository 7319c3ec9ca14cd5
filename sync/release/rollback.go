package release

import (
	"context"
	"errors"
	"fmt"

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
	return e.run(ctx, id, t, o.timeout(), func(ctx context.Context) (Result, error) {
		s, err := e.newSession(ctx, t, Desired{Identity: id, Options: o}, observed)
		if err != nil {
			return Result{}, err
		}
		defer s.close()
		if err := s.giveUp(why); err != nil {
			return Result{}, s.failed("roll back", err)
		}
		if _, ok := s.fallback(); !ok {
			_, err := s.uninstall(ctx)
			return s.outcome(nil, s.failed("uninstall", err))
		}
		if err := s.failed("roll back", s.rollback()); err != nil {
			return s.outcome(nil, err)
		}
		newest := s.store.newest()
		restored, err := s.store.Get(s.store.key(newest))
		if err != nil {
			return Result{}, s.failed("roll back", err)
		}
		return s.result(restored)
	})
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

// undo runs do in a session of its own, after an action has failed: with what is recorded now, and with its own time, because
// that of the action may be what was too short. A caller that is gone undoes nothing; the next one will.
func (s *session) undo(ctx context.Context, do func(context.Context, *session) error) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.desired.Options.timeout())
	defer cancel()
	observed, err := s.engine.Observe(ctx, s.target, s.id)
	if err != nil {
		return err
	}
	fresh, err := s.engine.newSession(ctx, s.target, s.desired, observed)
	if err != nil {
		return err
	}
	defer fresh.close()
	return do(ctx, fresh)
}

// observeOurs observes a release that must be there and be ours.
func (e *Engine) observeOurs(ctx context.Context, t Target, id Identity) (Observed, error) {
	observed, err := e.Observe(ctx, t, id)
	if err != nil {
		return observed, err
	}
	newest, ok := observed.newest()
	switch {
	case !ok:
		return observed, &Error{Reason: ReasonGone, Err: fmt.Errorf("there is no release %s", id)}
	case newest.OwnerHash != id.OwnerHash:
		return observed, &Error{Reason: ReasonConflict, Err: fmt.Errorf("release %s is not ours", id)}
	default:
		return observed, nil
	}
}
