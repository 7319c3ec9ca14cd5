package applicationinstallation

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

// jobKey identifies an installation of a cluster; the UID distinguishes it from another of the same
// name.
type jobKey struct {
	cluster types.NamespacedName
	name    types.NamespacedName
	uid     types.UID
}

// session is what is remembered of an installation between passes. Only the pass of the
// installation itself uses it, so it needs no lock; but its jobs write to the inventory.
type session struct {
	// prepared is what was prepared for the digest, until it is acted on.
	prepared *prepared
	// asked is the question that the source was last asked, lookErr the error that this ended with,
	// and look the next time.
	asked   string
	lookErr error
	look    reconcile.Retry
	// installed is what was last installed, or tried.
	installed installed

	// restored says that inventory was read back from the status.
	restored bool
	deployed deployed
	// acting is the input of the running action, empty if there is none. toldBefore is how many
	// changes by others the cluster had reported when it, or the last one, began, and requested is
	// what the annotation reconcile-at was then.
	acting     string
	toldBefore int
	requested  string
	// compareAt is when everything is compared with the cluster again, after an interval.
	interval  time.Duration
	compareAt time.Time

	// acted says that an action has ended since the start, attempted is the digest that was last
	// acted on, and result the outcome.
	acted     bool
	attempted string
	result    acted

	// healthAwaited is when what is installed was written; zero once it has been healthy, and
	// without wait.
	healthAwaited time.Time
	// begun says that the running or next install is of another application, version or source
	// revision than the status had named.
	begun bool
	// uninstalling says that an uninstall has begun.
	uninstalling bool

	// retry is for failed actions.
	retry reconcile.Retry
}

// beginUninstall clears, once, what was due: what delayed the install does not delay the uninstall,
// and there is nothing left to look at.
func (s *session) beginUninstall() {
	if !s.uninstalling {
		s.uninstalling, s.retry.At, s.result.lasts = true, time.Time{}, false
		s.look.At, s.compareAt, s.healthAwaited = time.Time{}, time.Time{}, time.Time{}
	}
}

// session returns what is remembered of an installation.
func (d *driver) session(inst *v1alpha1.ApplicationInstallation) *session {
	return d.sessions.Of(inst.UID, func() *session {
		return &session{retry: reconcile.Retry{Failures: int(inst.Status.Failures)}}
	})
}
