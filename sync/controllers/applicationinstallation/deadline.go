package applicationinstallation

import (
	"time"

	"waybill.dev/waybill/api/v1alpha1"
)

// awaitHealthOf starts the time within which something else than before must become healthy. A
// kustomization is awaited from the intent to apply it; the time of a release starts when it has
// been written.
func (s *scope) awaitHealthOf(app v1alpha1.ResolvedApplication) {
	if app.Method == v1alpha1.MethodKustomize {
		s.session.deadline.start(s.options())
	}
}

// awaitHealthAfter starts the time anew where this action was the first to apply all of a
// kustomization: it cannot be healthy before.
func (s *scope) awaitHealthAfter(result acted) {
	x := s.session
	awaited := s.current().Method == v1alpha1.MethodKustomize && !x.deadline.since.IsZero()
	if awaited && !x.result.complete() && result.complete() {
		x.deadline.start(s.options())
	}
}

// awaitHealthAnew starts the time anew where it ran out while the cluster was lost, once that is back:
// whether it became healthy, or had a chance to, was not observed.
func (s *scope) awaitHealthAnew() {
	x := s.session
	switch {
	case s.lost != nil:
		x.deadline.unseen = s.isDue(s.healthDue())
	case x.deadline.unseen:
		x.deadline.unseen = false
		if !x.deadline.since.IsZero() { // or it was given up meanwhile
			x.deadline.start(s.options())
		}
	}
}

// givesUp reports whether what is installed has not been healthy in time, and is rolled back for
// it; but not while the cluster is lost or what is to replace it is being fetched, nor while it is not
// known what is installed, because the source was not there since the start: nothing would keep what
// was given up from being installed again.
func (s *scope) givesUp() bool {
	o := s.options()
	return o != nil && o.Atomic && !s.session.holding.held() && s.lost == nil && s.isDue(s.healthDue()) && s.fetching != fetchingWanted && s.session.installed.moved != ""
}

// overdue reports whether what was installed last must be given up, because it has never been
// healthy and its time is over, and why. If that was tried and failed, it says when to try again.
func (d *driver) overdue(s *scope) (string, bool) {
	x := s.session
	if x.tried.phase() == phaseGivingUp {
		return x.tried.givingUp, s.lost == nil && s.retryDue(x.tried.attempts)
	}
	if !x.acted || x.tried.phase() != phaseWell || !x.result.complete() || !s.givesUp() {
		return "", false
	}
	seen, known := d.applier.Observe(s.owner)
	return overdueMessage(s.options(), seen.Health), known && !seen.Health.Healthy()
}

// healthDue returns when the installation fails if it is not healthy by then; zero if it has been
// healthy, or need not be.
func (s *scope) healthDue() time.Time {
	since := s.session.deadline.since
	if o := s.options(); !since.IsZero() && o != nil && o.Wait {
		return since.Add(o.GetTimeout())
	}
	return time.Time{}
}
