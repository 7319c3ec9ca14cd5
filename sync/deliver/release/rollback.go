package release

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
)

// Verdict is that a revision was installed and turned out not to work.
type Verdict struct {
	// Why is recorded with the revision.
	Why string
	// Confirm looks once more; nil does not. It is called before anything is recorded or changed, and
	// not again once the verdict is recorded. Its error ends the rollback.
	Confirm func(context.Context) error
}

// confirmed returns nil if the verdict on the newest revision stands.
func (v Verdict) confirmed(ctx context.Context, observed Observed) error {
	if newest, _ := observed.newest(); v.Confirm == nil || newest.Status != helmrelease.StatusDeployed {
		return nil
	}
	return v.Confirm(ctx)
}

// Rollback gives up a revision that was installed and turned out not to work: the last one before
// it that was installed completely is installed again as a new revision; if there is none, the
// release is uninstalled. This is what Atomic means once objects
// do not become healthy in time. The next Ensure takes up the input again: its caller decides when.
// ReasonAltered says that there is such a revision but its record differs from what was noted: then
// what is installed stays.
func (e *Engine) Rollback(ctx context.Context, t Target, id Identity, o Options, v Verdict) (Result, error) {
	observed, err := e.observeOurs(ctx, t, id)
	if err != nil {
		return Result{}, err
	}
	if err := v.confirmed(ctx, observed); err != nil {
		return Result{}, err
	}
	j := job{engine: e, target: t, desired: Desired{Identity: id, Options: o}, observed: observed}
	return inSession(ctx, j, func(ctx context.Context, s *session) (Result, error) {
		if err := s.giveUp(v.Why); err != nil {
			return Result{}, s.failed("roll back", err)
		}
		good, err := s.fallback()
		if err == nil && good == 0 {
			return s.takeAway(ctx)
		}
		return s.goBack(good, err)
	})
}

// takeAway uninstalls what an install has created.
func (s *session) takeAway(ctx context.Context) (Result, error) {
	_, err := s.uninstall(ctx, nil)
	err = s.failed("uninstall", err)
	result, _ := s.outcome(nil, err)
	result.Gone = err == nil
	return result, err
}

// goBack installs a revision again and describes it; given an error, it describes what is there.
// What only a later, altered revision contains is deleted, as after an upgrade.
func (s *session) goBack(good int, err error) (Result, error) {
	if err == nil {
		err = s.readLeftovers()
	}
	if err == nil {
		err = s.rollback(good)
	}
	newest, readErr := s.store.Get(s.store.key(s.store.newest()))
	if err = cmp.Or(err, readErr); err == nil {
		err = s.settle(newest)
	} else {
		s.endPending(newest, err)
	}
	return s.outcome(newest, s.failed("roll back", err))
}

// endPending records a rollback as failed whose hook failed or was cut off: Helm leaves it pending.
func (s *session) endPending(newest *helmrelease.Release, why error) {
	if newest == nil || !newest.Info.Status.IsPending() || s.store.isAltered(newest.Version) {
		return
	}
	newest.SetStatus(helmrelease.StatusFailed, "Rollback failed: "+why.Error())
	_ = s.store.Update(s.store.key(newest.Version), newest) // else the next action ends it
}

// giveUp records the newest revision as failed, and goes by that from then on.
func (s *session) giveUp(why string) error {
	s.observed.Revisions = slices.Clone(s.observed.Revisions)
	newest := &s.observed.Revisions[len(s.observed.Revisions)-1]
	newest.Status = helmrelease.StatusFailed
	key := s.store.key(newest.Number)
	current, err := s.store.Get(key)
	if err != nil {
		return err
	}
	current.SetStatus(helmrelease.StatusFailed, why)
	return s.store.Update(key, current)
}

// rollback runs Helm's rollback action, to that revision.
func (s *session) rollback(good int) error {
	cfg, err := s.configuration()
	if err != nil {
		return err
	}
	run := action.NewRollback(cfg)
	run.Version = good
	run.Timeout = s.desired.Options.timeout()
	run.DisableHooks = s.desired.Options.DisableHooks
	return run.Run(s.id.Name)
}

// fallback returns the revision to go back to: the last one before the newest that was installed
// completely; 0 if there is none. If that one is altered or gone, fallback returns an error: this
// is no reason to go back further, or to uninstall what worked before.
func (s *session) fallback() (int, error) {
	if s.id.Known == nil || s.id.Known.Fallback == nil {
		earlier := Observed{Revisions: s.observed.Revisions[:max(len(s.observed.Revisions)-1, 0)]}
		if unknown, ok := earlier.lastGood(); ok {
			return 0, s.id.altered(unknown.Number)
		}
		return 0, nil
	}
	good := int(s.id.Known.Fallback.Revision)
	_, err := s.store.Get(s.store.key(good))
	if errors.Is(err, driver.ErrReleaseNotFound) || err == nil && s.store.isAltered(good) {
		err = s.id.altered(good)
	}
	return good, err
}
