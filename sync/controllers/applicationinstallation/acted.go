package applicationinstallation

import (
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
	// not be checked.
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
