package applicationinstallation

import (
	"cmp"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/source/subscription"
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
	// definition is what was last read of it, without its versions; nil since the start if it is
	// gone.
	definition *v1alpha1.ApplicationDefinition
	// prepared is what was fetched for the digest, until it is installed.
	prepared *prepared
	// source is asked for what is to be installed and, if it moves, whether it has.
	source subscription.Subscription[jobKey, prepared]

	// restored says that what the status records was read back.
	restored bool
	deployed deployed
	// unsaved says that keepInventory has changed the status, which was not written since.
	unsaved bool
	// running is the action that has begun and whose result was not taken yet; nil if there is none.
	// toldBefore is how many changes by others the cluster had reported when it, or the last one,
	// began.
	running    *action
	toldBefore int
	// compareAt is when everything is compared with the cluster again, after an interval.
	interval  time.Duration
	compareAt time.Time

	// installed is what was last installed, or tried.
	installed installed
	// failure is why that failed, or was given up; nil if it was installed. givenUp identifies what
	// was given up for good. install says when to try again.
	failure error
	givenUp string
	install attempts
	// rendering is the chart that is being rendered and installed, or was when that was interrupted; nil if
	// there is none.
	rendering *v1alpha1.RenderingStatus
	// givingUp is why what was installed is given up, while the rollback has failed and is tried again,
	// at the time of install. A restart forgets it: what is wanted is then installed again if it was
	// recorded as failed already, and since the status keeps the time, it is given up once more if it
	// is not healthy.
	givingUp string
	// acted says that an action has ended since the start, and result is what the last one found.
	// correction says when to try again what is wrong with that.
	acted      bool
	result     findings
	correction attempts

	// holding says whether an ApplicationRollback holds what is installed.
	holding holding
	// undo is how the installation goes back from an upgrade that failed, with its data; nil unless one did.
	undo *v1alpha1.UpgradeRollback

	// healthAwaited is when what is installed was written; zero once it has been healthy, and
	// without wait.
	healthAwaited time.Time
	// unseen says that the time for that ran out while the cluster was lost.
	unseen bool
	// awaiting is what was prepared and waits for others; empty if nothing does.
	awaiting awaiting
	// snapshotAt is when to look again at the snapshot that an upgrade waits for; zero for only when it changes.
	snapshotAt time.Time
	// leftSince is when it was first seen that the installation is being deleted while others depend on it.
	leftSince time.Time
	// uninstalling says that an uninstall has begun.
	uninstalling bool
}

// beginUninstall clears, once, what was due: what delayed the install does not delay the uninstall.
func (s *session) beginUninstall() {
	if !s.uninstalling {
		s.uninstalling, s.install, s.correction = true, attempts{}, attempts{}
		s.compareAt, s.healthAwaited = time.Time{}, time.Time{}
	}
}

// restore reads back from the status, after a start, what became of the last install: what was
// given up is not installed again.
func (s *session) restore(inst *v1alpha1.ApplicationInstallation) {
	s.deployed.note(inst.Status.Release)
	if since := inst.Status.HealthAwaitedSince; since != nil {
		s.healthAwaited = since.Time
	}
	s.rendering = inst.Status.Rendering
	s.givenUp = inst.Status.GivenUp
	if s.givenUp != "" {
		s.installed.moved = s.givenUp
		s.installed.digest, _, _ = strings.Cut(s.givenUp, "/")
		reason := cmp.Or(conditions.GetReason(inst, v1alpha1.InstalledCondition), v1alpha1.NotHealthyReason)
		s.failure = reconcile.Stalled(reason, "%s", conditions.GetMessage(inst, v1alpha1.InstalledCondition))
	}
	if s.undo = inst.Status.UpgradeRollback.DeepCopy(); s.undo != nil {
		s.failure = undoFailure(s.undo, inst.Status.Application)
	}
	s.restoreHold(inst)
	s.restored = true
}

// undoing reports whether the installation is going back from an upgrade that failed.
func (s *session) undoing() bool { return s.undo != nil && !s.undo.Ended() }

// session returns what is remembered of an installation.
func (d *driver) session(inst *v1alpha1.ApplicationInstallation) *session {
	return d.sessions.Of(inst.UID, func() *session {
		return &session{source: d.fetches.New(d.jobKey(inst)), install: attempts{
			Retry:     reconcile.Retry{Failures: int(inst.Status.Failures)},
			requested: inst.Status.LastHandledReconcileAt,
		}}
	})
}
