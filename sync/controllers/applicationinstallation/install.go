package applicationinstallation

import (
	"context"
	"fmt"
	"time"
)

// recordIntent records what is about to be installed before the first write to the cluster: after a
// crash at any later line, it is known what to uninstall, and what was being rendered.
func (d *driver) recordIntent(ctx context.Context, s *scope) error {
	got := s.session.prepared
	if s.session.running != nil || got == nil || s.session.holding.held() || !s.mustInstall(got) {
		return nil
	}
	if err := d.noteRendering(s, got); err != nil {
		return err
	}
	resolved := s.resolved
	resolved.Revision = got.files.revision
	current := s.inst.Status.Application
	if current == nil || *current != resolved {
		s.show(installing(resolved)) // with the intent: so there is nothing left to write while it is installed
		s.awaitHealthOf(resolved)
	}
	s.inst.Status.Application, s.inst.Status.HealthAwaitedSince = &resolved, sinceOf(s.session.deadline.since)
	s.inst.Status.OptionalValues = s.optional
	s.noteBegun(got.moved())
	s.session.tried.givenUp, s.inst.Status.GivenUp = "", ""
	s.session.undo, s.inst.Status.UpgradeRollback = nil, nil
	return s.pass.Write(ctx)
}

// mustInstall reports whether what was prepared is to be installed now.
func (s *scope) mustInstall(got *prepared) bool {
	return s.waits == nil && s.isNew(got.digest, got.moved())
}

// isNew reports whether an input is wanted and not installed, or is to be tried again.
func (s *scope) isNew(digest, moved string) bool {
	return digest == s.digest && (moved != s.session.installed.moved || s.reinstallDue())
}

// reinstallDue reports whether to try the install again that has failed. While a rollback has failed,
// that is tried again instead: what it gives up is not installed once more.
func (s *scope) reinstallDue() bool {
	return s.session.tried.phase() != phaseGivingUp && s.retryDue(s.session.tried.attempts)
}

// installOnce creates the namespace if asked to, installs, and describes the result as an
// Application.
func (d *driver) installOnce(ctx context.Context, m method, p plan, f *files) acted {
	release := d.cluster.Hold() // also while it settles: once the cluster is left, it cannot be held any more
	settles := false
	defer func() {
		if !settles {
			release()
		}
	}()
	got := d.actingAs(ctx, p, notInstalled, func(p plan) acted {
		return d.installIn(ctx, m, p, f)
	})
	if settles = got.complete(); !settles {
		d.noteLast(ctx, p, got) // it may have been cancelled after it had noted the release
		return got
	}
	got.settle = func(ctx context.Context) {
		defer release()
		d.settle(ctx, p, got)
	}
	return got
}

// installIn installs in a namespace that is there, and marked as it is to be. If nothing has changed since
// the process before, there is one.
func (d *driver) installIn(ctx context.Context, m method, p plan, f *files) acted {
	marked := isMarked(p.namespace)
	if !marked {
		if got, unchanged := m.resume(ctx, p, f); unchanged {
			return got
		}
	}
	if err := d.ensureNamespace(ctx, p); err != nil {
		return notInstalled(err)
	}
	if marked {
		if got, unchanged := m.resume(ctx, p, f); unchanged {
			return got
		}
	}
	return m.install(ctx, p, f)
}

// settleTime is how long an install waits for what it has installed. It is too short for users to
// notice that the end is reported later.
const settleTime = 2 * time.Second

// settle waits a moment for what was installed: what is healthy almost at once is reported once.
func (d *driver) settle(ctx context.Context, p plan, got acted) {
	d.told.Until(ctx, p.owner.ObjectKey(), settleTime, func() bool { return d.settled(p) })
	d.noteLast(ctx, p, got)
}

// settled reports whether there is nothing to wait for: what was installed is healthy, or has failed,
// or the process is about to end.
func (d *driver) settled(p plan) bool {
	seen, known := d.applier.Observe(p.owner)
	return !known || seen.Health.Healthy() || seen.Health.Failed() || d.Drain.Draining()
}

// prefixed names the application, its version and its namespace in the message of an error.
func prefixed(what string, p plan, err error) error {
	return fmt.Errorf("%s %s %s in namespace %s: %w", what, p.resolved.Name, p.resolved.Version, p.resolved.Namespace, err)
}
