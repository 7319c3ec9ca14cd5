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
	comparison comparison

	// installed is what was last installed, or tried, and tried what became of that.
	installed installed
	tried     tried
	// rendering is the chart that is being rendered and installed, or was when that was interrupted; nil if
	// there is none.
	rendering *v1alpha1.RenderingStatus
	// acted says that an action has ended since the start, and result is what the last one found.
	// correction says when to try again what is wrong with that.
	acted      bool
	result     findings
	correction attempts

	// holding says whether an ApplicationRollback holds what is installed.
	holding holding
	// undo is how the installation goes back from an upgrade that failed, with its data; nil unless one did.
	undo *v1alpha1.UpgradeRollback

	deadline deadline
	// awaiting is what was prepared and waits for others; empty if nothing does.
	awaiting awaiting
	// snapshotAt is when to look again at the snapshot that an upgrade waits for; zero for only when it changes.
	snapshotAt time.Time
	leaving    leaving
}

// beginUninstall clears, once, what was due: what delayed the install does not delay the uninstall.
func (s *session) beginUninstall() {
	if !s.leaving.begun {
		s.leaving.begun, s.tried.attempts, s.correction, s.comparison.at = true, attempts{}, attempts{}, time.Time{}
		s.deadline.end()
	}
}

// restore reads back from the status, after a start, what became of the last install: what was
// given up is not installed again.
func (s *session) restore(inst *v1alpha1.ApplicationInstallation) {
	s.deployed.note(inst.Status.Release)
	if since := inst.Status.HealthAwaitedSince; since != nil {
		s.deadline.since = since.Time
	}
	s.rendering = inst.Status.Rendering
	s.tried.givenUp = inst.Status.GivenUp
	if s.tried.givenUp != "" {
		s.installed.moved = s.tried.givenUp
		s.installed.digest, _, _ = strings.Cut(s.tried.givenUp, "/")
		reason := cmp.Or(conditions.GetReason(inst, v1alpha1.InstalledCondition), v1alpha1.NotHealthyReason)
		s.tried.failure = reconcile.Stalled(reason, "%s", conditions.GetMessage(inst, v1alpha1.InstalledCondition))
	}
	if s.undo = inst.Status.UpgradeRollback.DeepCopy(); s.undo != nil {
		s.tried.failure = undoFailure(s.undo, inst.Status.Application)
	}
	s.restoreHold(inst)
	s.restored = true
}

// undoing reports whether the installation is going back from an upgrade that failed.
func (s *session) undoing() bool { return s.undo != nil && !s.undo.Ended() }

// session returns what is remembered of an installation.
func (d *driver) session(inst *v1alpha1.ApplicationInstallation) *session {
	return d.sessions.Of(inst.UID, func() *session {
		return &session{source: d.fetches.New(d.jobKey(inst)), tried: tried{attempts: attempts{
			Retry:     reconcile.Retry{Failures: int(inst.Status.Failures)},
			requested: inst.Status.LastHandledReconcileAt,
		}}}
	})
}
