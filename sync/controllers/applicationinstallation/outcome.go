package applicationinstallation

import (
	"cmp"

	"waybill.dev/waybill/sync/reconcile"
)

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
