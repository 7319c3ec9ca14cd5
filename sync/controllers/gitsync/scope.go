package gitsync

import (
	"time"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/source/git"
)

// scope is the state of one pass.
type scope struct {
	// gs is the GitSync; its status is changed by the steps recordIntent and collect, and by report.
	gs *v1alpha1.GitSync
	// pass writes the status.
	pass *reconcile.Pass
	// now is when the pass began: what was due by then, it sees to.
	now time.Time
	// session is what is remembered between passes.
	session *session
	// repository is set by readSecret.
	repository git.Repository
	// secretHash is set by readSecret; empty without a secretRef.
	secretHash string
	// apply is what delivered objects are marked with.
	apply apply.Owner
	// delivered is set by deliver when a job has ended since the last pass.
	delivered bool
	// namespaceGoes is set by remove: the namespace of the GitSync is being deleted.
	namespaceGoes bool
	// obsolete is the inventory that the status named before collect replaced it.
	obsolete *v1alpha1.Inventory
	// pending is set by a step that waits for a job to end as an event.
	pending bool
}

// outcome is that of a pass that failed: when to look again, beside what the error asks for.
func (s *scope) outcome() reconcile.Outcome {
	return reconcile.Outcome{RequeueAfter: s.requeueAfter()}
}

// requeueAfter is the time until the next look at the repository, until the next try, or until
// there is something to show. What was due when the pass began is not in it: the pass has seen to
// that or, where it could not, waits for a job or for a cluster, which end as events.
func (s *scope) requeueAfter() time.Duration {
	var next time.Time
	for _, due := range []time.Time{s.session.nextLook, s.session.retryAt, s.session.showDue} {
		if due.After(s.now) && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	if next.IsZero() {
		return 0
	}
	return max(time.Until(next), time.Millisecond)
}
