package applicationinstallation

import "waybill.dev/waybill/sync/reconcile"

// phase says what became of the last install; doc.go has the ways from one to another.
type phase int

const (
	// phaseWell: it did not fail, or there was none.
	phaseWell phase = iota
	// phaseFailed: it failed, and is tried again.
	phaseFailed
	// phaseGivingUp: it was not healthy in time, and the rollback has failed, which is tried again.
	phaseGivingUp
	// phaseGivenUp: it was given up for good. It is not installed again until something else is wanted.
	phaseGivenUp
)

// tried is what became of the last install, and when to try again.
type tried struct {
	attempts
	// failure is why it failed, or was given up; nil in phaseWell.
	failure error
	// givenUp identifies what was given up for good.
	givenUp string
	// givingUp is why what was installed is given up. A restart forgets it: what is wanted is then installed
	// again if it was recorded as failed already, and since the status keeps the time, it is given up once
	// more if it is not healthy.
	givingUp string
}

func (t *tried) phase() phase {
	switch {
	case t.failure == nil:
		return phaseWell
	case t.givingUp != "":
		return phaseGivingUp
	case t.givenUp != "":
		return phaseGivenUp
	default:
		return phaseFailed
	}
}

// installed records how an install ended.
func (t *tried) installed(failure error) { t.failure, t.givingUp = failure, "" }

// rolledBack records how a rollback ended: what was installed was given up, or is healthy; or there still is
// a release, and the rollback is tried again.
func (t *tried) rolledBack(why string, result acted) {
	t.failure, t.givenUp, t.givingUp = result.failure, result.givenUp, ""
	if t.failure != nil && !reconcile.IsStalled(t.failure) && result.record != recordGone {
		t.givingUp = why
	}
}

// forget drops what failed, but not when to try again.
func (t *tried) forget() { t.failure, t.givenUp, t.givingUp = nil, "", "" }
