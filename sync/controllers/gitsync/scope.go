package gitsync

import (
	"time"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/source/subscription"
)

// scope is the state of one pass.
type scope struct {
	// gs is the GitSync. Its status is changed by the steps recordIntent and collect, and by
	// report.
	gs *v1alpha1.GitSync
	// pass writes the status.
	pass *reconcile.Pass
	// now is when the pass began; the pass handles everything that was due by then.
	now time.Time
	// session is the state kept between passes.
	session *session
	// access is set by readSecret.
	access access
	// unidentified is set by selectTargets: until then the identity of a selected cluster is waited
	// for.
	unidentified time.Time
	// delivered is set by deliver when a job has ended since the last pass, of which others may be
	// under way still.
	delivered bool
	// namespaceGoes is set by remove: the namespace of the GitSync is being deleted.
	namespaceGoes bool
	// collected is set by collect; nil if there was nothing to collect.
	collected *collected
	// looked is what the session's subscription to the repository says, as of look.
	looked subscription.State
	// pending is set by a step that waits for a job whose end is an event.
	pending bool
}

// outcome returns the outcome of a failed pass: when to look again, in addition to what the error
// asks for.
func (s *scope) outcome() reconcile.Outcome {
	return reconcile.Outcome{RequeueAfter: s.requeueAfter()}
}

// requeueAfter returns the time until the next check of the repository, the next write of the clusters'
// progress, the end of the patience with the git server, or with a new cluster. Deliveries enqueue the
// GitSync themselves.
func (s *scope) requeueAfter() time.Duration {
	due := append(s.session.record.due(), s.looked.Due, s.unidentified)
	if until := s.waitsUntil(); !until.IsZero() {
		due = append(due, until, until.Add(patience))
	}
	return reconcile.UntilNext(s.now, due...)
}
