package applicationinstallation

import (
	"cmp"
	"context"
	"slices"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// findings are what an action in the cluster found to be there and to be wrong. Passes go by those of the
// last one, until another has ended.
type findings struct {
	// failure is why an install failed, or why what was installed was given up. It lasts until the
	// next install: no correction ends it.
	failure error
	// err is why what is installed is not, or not known to be, as it should be. The next correction
	// ends it.
	err error
	// inventory is what is, or may be, in the cluster; nil if the action came to nothing.
	inventory []manifest.ID
	problems  []manifest.Problem
	// warnings say what may not be watched.
	warnings []manifest.Problem
	// waiting is what will arrive as an event: a kind, a namespace, the end of an object.
	waiting []manifest.ID
	// drifted is what was found and left as it is: how each object differed.
	drifted []string
}

// acted is the outcome of an action: what it found, and what else a pass takes over once, when it has ended.
type acted struct {
	findings
	// givenUp identifies what a rollback gave up for good, so that it is not installed again.
	givenUp string
	// rollback is set if what failed goes back with its data: the action has undone nothing.
	rollback *v1alpha1.UpgradeRollback
	// spared says that a rollback did nothing: what it was to give up is healthy or, with a failure, could
	// not be looked at.
	spared bool
	// wrote says that a release was installed that was not there before, or was not known to be.
	wrote bool
	// record is what became of the record that a correction goes by.
	record record
	// release of method helm as the action left it, without a name if it is gone; nil if the action
	// came to nothing.
	release *v1alpha1.ReleaseStatus
	// returned says that a held release went back to the revision of its objects, or cannot, and
	// notReturned why not.
	returned    bool
	notReturned string
	// applied is the outcome of an apply, of method kustomize; nil if there was none.
	applied *apply.Result
	// heldElsewhere are the objects of a release that are held one by one, in another namespace; nil if they
	// were not checked.
	heldElsewhere *[]v1alpha1.Hold
	// settle waits a moment for what was installed; nil for nothing.
	settle func(context.Context)
	// corrected is what was corrected: how each object differed.
	corrected []string
}

// notInstalled is the outcome of an install that failed.
func notInstalled(err error) acted { return acted{findings: findings{failure: err}} }

// notCorrected is the outcome of a correction that failed.
func notCorrected(err error) acted { return acted{findings: findings{err: err}} }

// record is what became of Helm's record of what is installed, which corrections go by.
type record int

const (
	// recordUsable: corrections go by it.
	recordUsable record = iota
	// recordUnusable: it is there, but not as it was noted, or not that of a deployed release.
	recordUnusable
	// recordGone: there is none.
	recordGone
)

// wrong returns what is wrong with what is installed: the error, or the first of the problems.
func (f findings) wrong() error {
	if f.err == nil && len(f.problems) > 0 {
		return reconcile.Failed(v1alpha1.ApplyFailedReason, "%s%s", excerpt.Of(f.problems[0].Error(), maxMessage), excerpt.AndMore(len(f.problems)-1))
	}
	return f.err
}

// unwatched says, to be appended to a message, what may not be watched.
func (f findings) unwatched() string {
	if len(f.warnings) == 0 {
		return ""
	}
	return "; " + excerpt.Of(f.warnings[0].Error(), maxMessage) + excerpt.AndMore(len(f.warnings)-1)
}

// hides reports whether the warnings leave out any of what is not watched.
func (f findings) hides(unwatched []manifest.ID) bool {
	return slices.ContainsFunc(unwatched, func(id manifest.ID) bool {
		return !slices.ContainsFunc(f.warnings, func(w manifest.Problem) bool { return w.Reason == apply.ReasonNotWatched && w.ID == id })
	})
}

// complete reports whether everything that was to be written is there, healthy or not.
func (f findings) complete() bool { return f.failure == nil && f.wrong() == nil && len(f.waiting) == 0 }

// take records the outcome of an action.
func (d *driver) take(s *scope, a *action, result acted) {
	x := s.session
	x.acted = true
	s.inst.Status.Release = x.deployed.known()
	s.inst.Status.History = a.attempt.recorded(s.inst.Status.History, result, s.inst.Status.Release)
	if result.applied != nil {
		x.holding.holdObjects(*result.applied, s.now)
		s.showHold()
	}
	if result.heldElsewhere != nil {
		x.holding.objects, x.holding.looked = *result.heldElsewhere, true
		s.showHold()
	}
	if a.kind == install || a.kind == compare {
		x.comparison.at = after(s.interval())
	}
	switch a.kind {
	case install:
		x.rendering, s.inst.Status.Rendering = nil, nil
		s.takeInstall(a.prepared, result)
		x.tried.ended(a.requested, result.failure, d.kernel.Backoff)
	case goBack:
		s.takeReturn(a, result)
	case rollBack:
		s.takeRollback(a.why, result)
		x.tried.ended(a.requested, result.failure, d.kernel.Backoff)
		if result.spared {
			s.countFailures()
			return
		}
	case correct, compare:
		result.err = cmp.Or(result.err, result.failure)
		if result.record != recordUsable && !x.installAnew(result.record) {
			x.correction = attempts{requested: a.requested}
			// No other correction follows that would end what an earlier one said.
			x.result.err, x.result.problems, x.result.warnings = nil, nil, result.warnings
			return
		}
	}
	if a.kind == install || s.inst.Status.AppliedDigest == "" { // no correction is worth a write of the status
		s.inst.Status.AppliedDigest = d.appliedBy(s, result)
	}
	s.awaitHealthAfter(result)
	x.correction.ended(a.requested, result.wrong(), d.kernel.Backoff)
	x.result = result.findings
	if result.rollback != nil {
		s.beginUndo(result)
	}
	s.countFailures()
}

// appliedBy identifies what is in the cluster after an action; empty if that is not, or not known to be, all
// that there is to be.
func (d *driver) appliedBy(s *scope, result acted) string {
	if !result.complete() || s.session.tried.phase() != phaseWell || len(result.drifted) > 0 || s.session.holding.held() {
		return ""
	}
	return d.applier.Digest(s.owner)
}

// countFailures reports how often in a row what is wrong has failed.
func (s *scope) countFailures() {
	s.inst.Status.Failures = int32(max(s.session.tried.Failures, s.session.correction.Failures))
}

// takeInstall records what was installed, or tried.
func (s *scope) takeInstall(got *prepared, result acted) {
	x := s.session
	x.installed.digest, x.installed.moved = got.digest, got.moved()
	if result.failure == nil {
		x.installed.source, x.installed.revision = got.source, got.files.git
	}
	if x.prepared == got {
		x.prepared = nil
	}
	x.tried.installed(result.failure)
	x.awaiting = awaiting{}
	if result.wrote {
		x.deadline.start(s.options())
	}
}

// takeRollback records how a rollback ended. What was given up, or is healthy, is not awaited any more.
func (s *scope) takeRollback(why string, result acted) {
	x := s.session
	x.tried.rolledBack(why, result)
	if result.spared {
		x.result.failure = nil // that of an earlier try, which came to nothing
	}
	if result.failure == nil || reconcile.IsStalled(result.failure) {
		x.deadline.end()
	}
}

// installAnew has the application installed again, and reports whether it does, because corrections
// have nothing to go by. While a failed or given up install lasts, its record is not usable, which
// is no reason to try that before its time.
func (s *session) installAnew(r record) bool {
	if r == recordUnusable && s.tried.phase() != phaseWell {
		return false
	}
	s.installed.digest, s.installed.moved = "", ""
	s.tried.forget()
	return true
}

// takeUninstall records the outcome of an uninstall.
func (d *driver) takeUninstall(s *scope, a *action, result acted) {
	x := s.session
	result.err = cmp.Or(result.err, result.failure)
	x.tried.ended(a.requested, result.wrong(), d.kernel.Backoff)
	x.acted, x.result = true, result.findings
	s.inst.Status.Failures = int32(x.tried.Failures)
}
