package applicationinstallation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/hold"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/reconcile"
)

// undone returns the outcome of an install that failed. An upgrade that the release engine has left as it is
// goes back with its data; not if the job is cancelled: the next one tries it again first.
func undone(ctx context.Context, p plan, got acted, result release.Result) acted {
	switch {
	case result.Action != release.ActionUpgrade || p.options == nil || !p.options.Atomic:
		return got
	case p.inst.Status.UpgradeSnapshot == nil && isDeployed(got.release):
		got.failure = fmt.Errorf("%w%s", got.failure, p.withoutData())
		return got
	case p.inst.Status.UpgradeSnapshot == nil || result.Release.Status != "failed" || ctx.Err() != nil:
		return got
	}
	got.givenUp, got.rollback = p.inst.Status.Begun, p.upgradeRollback(got.failure)
	got.failure = reconcile.Stalled(got.rollback.Reason, "%w", got.failure)
	return got
}

// giveUpWithData gives up a revision whose objects did not become healthy in time, and leaves it as it is: its
// data has to go back first.
func (m *helmMethod) giveUpWithData(ctx context.Context, p plan, why string) acted {
	if err := m.confirm(ctx, p); err != nil {
		return spared(why, err)
	}
	failure := reconcile.Stalled(v1alpha1.NotHealthyReason, "%s", why)
	return acted{findings: findings{failure: failure, inventory: p.inventory}, givenUp: p.installed.moved, rollback: p.upgradeRollback(failure)}
}

// upgradeRollback returns how an installation goes back from an upgrade that failed. The name of the
// ApplicationRollback is the same also after a restart, and another one for another attempt.
func (p plan) upgradeRollback(failure error) *v1alpha1.UpgradeRollback {
	snapshot := *p.inst.Status.UpgradeSnapshot
	made := int32(0)
	if known := p.deployed.known(); known != nil {
		made = known.Revision
	}
	h := sha256.Sum256(fmt.Appendf(nil, "%s %s %d", p.inst.UID, snapshot.Name, made))
	return &v1alpha1.UpgradeRollback{
		Phase: v1alpha1.UpgradeRollbackRestoring, Name: p.inst.Name + "-undo-" + hex.EncodeToString(h[:5]), Snapshot: snapshot,
		Reason: cmp.Or(reconcile.ReasonOf(failure), v1alpha1.UpgradeFailedReason), Message: excerpt.Of(failure.Error(), maxMessage),
	}
}

// beginUndo records that what was installed is given up, and goes back with its data. Another pass creates the
// ApplicationRollback, once the status says so.
func (s *scope) beginUndo(result acted) {
	x := s.session
	x.undo, x.tried.givenUp, x.tried.givingUp = result.rollback, result.givenUp, ""
	x.deadline.end()
	s.sayUndo()
}

// sayUndo has the status say how far it is.
func (s *scope) sayUndo() {
	if u := s.session.undo; u != nil {
		s.session.tried.failure = undoFailure(u, s.inst.Status.Application)
	}
	s.inst.Status.GivenUp, s.inst.Status.UpgradeRollback = s.session.tried.givenUp, s.session.undo.DeepCopy()
}

// undoFailure says why an upgrade failed, and what becomes of it.
func undoFailure(u *v1alpha1.UpgradeRollback, app *v1alpha1.ResolvedApplication) error {
	namespace := ""
	if app != nil {
		namespace = app.Namespace
	}
	by := hold.Describe(types.NamespacedName{Namespace: namespace, Name: u.Name})
	snapshot := fmt.Sprintf("ApplicationSnapshot %s/%s", namespace, u.Snapshot.Name)
	switch u.Phase {
	case v1alpha1.UpgradeRollbackCompleted:
		return reconcile.Stalled(u.Reason, "%s; rolled back with its data to %s by %s%s; change the installation to try again", u.Message, snapshot, by, u.Outcome)
	case v1alpha1.UpgradeRollbackFailed:
		return reconcile.Stalled(u.Reason, "%s; not rolled back: %s: %s; %s has the state of before the upgrade; change the installation to try again", u.Message, by, u.Outcome, snapshot)
	case v1alpha1.UpgradeRollbackReturning:
		return reconcile.Waiting(u.Reason, 0, "%s; rolling back: the data is that of %s, and the release goes back to revision %d", u.Message, snapshot, u.Snapshot.Revision)
	default:
		return reconcile.Waiting(u.Reason, 0, "%s; rolling back: waiting for %s to go back to %s: %s", u.Message, by, snapshot, cmp.Or(u.Outcome, "it is being created"))
	}
}

// withoutData says, to be appended to what was rolled back, that its data was not, though snapshots are taken.
func (p plan) withoutData() string {
	before := p.inst.GetBeforeUpgrade(p.source.version)
	if before.Snapshot == v1alpha1.SnapshotTry || before.Snapshot == v1alpha1.SnapshotRequire {
		return " without its data, because no snapshot was taken before the upgrade"
	}
	return ""
}

// undo has an ApplicationRollback take the installation back from an upgrade that failed, and reports whether
// that one says what holds the installation. From when it is recorded until it has ended, nothing is
// installed or corrected; after that, until something else is wanted, a user asks for it, or what is held is
// released.
func (d *driver) undo(ctx context.Context, s *scope) (bool, error) {
	u, h := s.session.undo, &s.session.holding
	if u == nil || u.Phase == v1alpha1.UpgradeRollbackFailed {
		return false, nil
	}
	key := types.NamespacedName{Namespace: s.current().Namespace, Name: u.Name}
	if by, marked := hold.By(s.inst); marked && by != key && u.Ended() {
		return false, nil // another one has rolled it back since
	}
	seen, watched := d.holders.seen(ctx, s.key(), key)
	if u.Ended() && h.by == key && watched && seen == h.version && !s.retriesUndo() {
		s.showHold()
		return true, nil
	}
	h.by, h.early, h.version, h.at = key, false, seen, time.Time{}
	if !watched {
		h.at = s.now.Add(atWorkInterval)
	}
	if s.sayUndo(); u.UID == "" {
		if err := s.pass.Write(ctx); err != nil {
			return true, err
		}
	}
	found, err := d.findRollback(ctx, s, key)
	if err != nil {
		h.at = s.now
		return true, err
	}
	d.followUndo(s, found)
	s.sayUndo()
	s.showHold()
	return true, s.pass.Write(ctx)
}

// retriesUndo reports whether what has gone back is not held any longer: something else is wanted, or a user
// asks for another try.
func (s *scope) retriesUndo() bool {
	x := s.session
	if x.undo == nil || !x.undo.Ended() || x.holding.atWork || !x.holding.hold.Holds() {
		return false
	}
	return s.wantsElse() || x.tried.Failures > 0 && x.tried.requested != s.requestedAt()
}

// followUndo takes over how far the ApplicationRollback is; nil if it is gone.
func (d *driver) followUndo(s *scope, found *v1alpha1.ApplicationRollback) {
	u, h := s.session.undo, &s.session.holding
	switch {
	case found == nil && !u.Ended():
		s.endUndo("it was deleted")
		return
	case found != nil && u.Ended() && found.Status.Phase == v1alpha1.RollbackReverted:
		s.forgetUndo()
		d.prepareWanted(s)
		return
	case found == nil, u.Ended() && len(found.Status.Held) == 0:
		h.hold, h.atWork = nil, false // what is held is released: what was rolled back stays
		return
	}
	u.UID = found.UID
	s.holdForUndo(found)
	if u.Phase == v1alpha1.UpgradeRollbackRestoring {
		s.followRestore(found)
		return
	}
	h.atWork = hold.UnderWay(found)
	if s.retriesUndo() {
		h.hold.Wanted = ""
	}
}

// followRestore takes over how far data and objects are back.
func (s *scope) followRestore(found *v1alpha1.ApplicationRollback) {
	u, h := s.session.undo, &s.session.holding
	h.atWork = true
	switch phase := found.Status.Phase; {
	case phase == v1alpha1.RollbackCompleted, phase == v1alpha1.RollbackFinal:
		u.Phase, u.Outcome, h.hold.Revision, h.atWork = v1alpha1.UpgradeRollbackReturning, "", u.Snapshot.Revision, false
	case phase == v1alpha1.RollbackReverted, phase == v1alpha1.RollbackFailed && len(found.Status.Held) == 0:
		s.endUndo(outcomeOf(found))
	default:
		u.Outcome = outcomeOf(found)
	}
}

// outcomeOf says what a rollback has come to.
func outcomeOf(r *v1alpha1.ApplicationRollback) string {
	phase := cmp.Or(r.Status.Phase, v1alpha1.RollbackPending)
	if r.Status.Error != nil {
		return fmt.Sprintf("%s: %s", phase, excerpt.Of(r.Status.Error.Message, maxMessage))
	}
	if phase == v1alpha1.RollbackPending && conditions.IsFalse(r, v1alpha1.ReadyCondition) {
		return fmt.Sprintf("%s: %s", phase, excerpt.Of(conditions.GetMessage(r, v1alpha1.ReadyCondition), maxMessage))
	}
	return string(phase)
}

// holdForUndo holds what is installed for the sake of its ApplicationRollback.
func (s *scope) holdForUndo(found *v1alpha1.ApplicationRollback) {
	h := &s.session.holding
	if h.hold != nil && h.hold.RollbackUID == found.UID {
		return
	}
	h.hold = s.newHold(&hold.Holder{Name: found.Name, UID: found.UID}, &v1alpha1.HeldObject{})
}

// endUndo records that the installation could not go back: what is there stays, and the snapshot with it.
func (s *scope) endUndo(why string) {
	x := s.session
	x.undo.Phase, x.undo.Outcome = v1alpha1.UpgradeRollbackFailed, why
	x.holding.hold, x.holding.atWork = nil, false
	x.tried.requested = s.requestedAt()
}

// takeUndone records that release and data are as before the upgrade.
func (s *scope) takeUndone(result acted) {
	x := s.session
	x.undo.Phase = v1alpha1.UpgradeRollbackCompleted
	if result.notReturned != "" {
		x.undo.Outcome = "; " + result.notReturned
	}
	x.tried.requested = s.requestedAt()
	s.sayUndo()
}

// forgetUndo has the upgrade tried again that a user has gone back to by undoing its rollback.
func (s *scope) forgetUndo() {
	x := s.session
	x.tried.forget()
	x.undo, x.holding.hold, x.holding.atWork = nil, nil, false
	x.installed.digest, x.installed.moved = "", ""
}
