package release

import (
	"context"
	"slices"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/kube"

	"waybill.dev/waybill/sync/manifest"
)

// Uninstalled is what an uninstall leaves.
type Uninstalled struct {
	// Objects that were to be deleted. Some may linger until their finalizers are done.
	Objects []manifest.ID
	// Kept are objects that stay, and why.
	Kept []Kept
	// Altered are revisions whose records are not as they were noted. Of what these name, only what carries the marks of the
	// release was deleted, and with the newest among them no delete hooks were run.
	Altered []int
}

// Uninstall takes a release away, with its record, and runs its delete hooks. Neither chart nor values are needed. A release that
// is not there, or is somebody else's, is no error: there is nothing of ours to take away. An error names what could not be
// deleted; the record stays, so that the next call goes on (K47, K53, C34).
func (e *Engine) Uninstall(ctx context.Context, t Target, id Identity, o Options) (Uninstalled, error) {
	observed, err := e.observeOurs(ctx, t, id)
	if reason := ReasonOf(err); reason == ReasonGone || reason == ReasonConflict {
		return Uninstalled{}, nil
	}
	if err != nil {
		return Uninstalled{}, err
	}
	j := job{engine: e, target: t, desired: Desired{Identity: id, Options: o}, observed: observed}
	return inSession(ctx, j, func(ctx context.Context, s *session) (Uninstalled, error) {
		left, err := s.uninstall(ctx)
		return left, s.failed("uninstall", err)
	})
}

// finishUninstall ends an uninstall that was broken off.
func finishUninstall(ctx context.Context, s *session, _ Decision) (Result, error) {
	_, err := s.uninstall(ctx)
	return Result{}, s.failed("uninstall", err)
}

// uninstall runs Helm's action, which looks at the newest revision only. Where that one failed, what the others before it, down
// to the last good one, have beyond it is taken away first; and all of it where that one is altered. The delete hooks are those of
// the newest revision that is known, or none are run.
func (s *session) uninstall(ctx context.Context) (Uninstalled, error) {
	var left Uninstalled
	revisions, err := s.standing()
	if err != nil {
		return left, err
	}
	left.Altered = s.store.allAltered()
	var helms kube.ResourceList // what Helm's action deletes
	for i, r := range revisions {
		had, err := s.had(r)
		if err != nil {
			return left, err
		}
		if i == 0 && !s.store.isAltered(r) {
			helms = had
			left.add(had)
			continue
		}
		beyond := had.Difference(helms)
		left.add(beyond)
		if _, errs := s.client.Delete(reversed(beyond)); len(errs) > 0 {
			return left, errs[0]
		}
	}
	err = s.runUninstall(ctx)
	left.Kept = append(left.Kept, s.client.kept...)
	return left, err
}

func (s *session) runUninstall(ctx context.Context) error {
	_, err := s.current()
	known := err == nil
	if err != nil && ReasonOf(err) != ReasonAltered {
		return err
	}
	cfg, err := s.configuration()
	if err != nil {
		return err
	}
	run := action.NewUninstall(cfg)
	run.IgnoreNotFound = true
	run.DisableHooks = s.desired.Options.DisableHooks || !known
	run.Timeout = s.desired.Options.timeout()
	if _, err = run.Run(s.id.Name); err != nil {
		return err
	}
	return ctx.Err()
}

// standing are the revisions whose objects may be in the cluster, the newest first: where it is deployed that one alone, else all
// back to the last good one. An altered one says nothing about those before it.
func (s *session) standing() ([]int, error) {
	var found []int
	for _, r := range slices.Backward(s.observed.Revisions) {
		if _, err := s.store.Get(s.store.key(r.Number)); err != nil {
			return nil, err
		}
		found = append(found, r.Number)
		if r.good() && !s.store.isAltered(r.Number) {
			break
		}
	}
	return found, nil
}

// add notes what is to be deleted; what the chart wants kept, Helm does not touch.
func (u *Uninstalled) add(list kube.ResourceList) {
	for _, info := range list {
		o, err := object(info)
		if err == nil && o.GetAnnotations()[kube.ResourcePolicyAnno] == kube.KeepPolicy {
			u.Kept = append(u.Kept, Kept{ID: idOf(info), Why: keepWhy})
			continue
		}
		u.Objects = append(u.Objects, idOf(info))
	}
}
