package applicationinstallation

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/hold"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/reconcile"
)

// Where rollbacks may not be watched, these are the intervals at which one is read that is at work, and one
// that has ended and still holds.
const (
	atWorkInterval = 10 * time.Second
	endedInterval  = time.Minute
)

// holding is what is known of the ApplicationRollback that holds an installation.
type holding struct {
	// by is the rollback that the installation named when that was last found out, and hold what came
	// of it, nil if it does not hold the release. at is when to find out again; zero for not before the
	// annotation changes.
	by   types.NamespacedName
	hold *v1alpha1.ReleaseHold
	at   time.Time
	// version is the resource version at which the rollback was read.
	version string
	// requested is what the annotation reconcile-at was then.
	requested string
	// atWork says that the rollback is under way.
	atWork bool
	// early says that by is what objects of the release name, and not the installation yet.
	early bool
	// objects are those that are held one by one, of a kustomization or, in another namespace, of a release; known only
	// if looked is set.
	objects []v1alpha1.Hold
	looked  bool
}

// held reports whether the release is left as it is.
func (h *holding) held() bool { return h.hold != nil && (h.hold.Holds() || h.atWork) }

// holdObjects takes over which objects of a kustomization are held.
func (h *holding) holdObjects(result apply.Result, now time.Time) {
	h.objects, h.looked, h.at = result.Held, true, time.Time{}
	if result.Unseen && len(result.Held) > 0 {
		h.at = now.Add(endedInterval)
	}
}

// heldObjects returns which objects are held one by one, according to the last action or the status.
func (s *scope) heldObjects() []v1alpha1.Hold {
	if s.session.holding.looked {
		return s.session.holding.objects
	}
	return s.inst.Status.Held
}

// heldChanged passes changes of the annotation that names who holds an object.
func heldChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetAnnotations()[v1alpha1.HeldByAnnotation] != e.ObjectNew.GetAnnotations()[v1alpha1.HeldByAnnotation]
		},
	}
}

// heed finds out whether an ApplicationRollback holds the release of the installation. What was
// installed when the hold was met is recorded before anything is done about it. The objects of a
// kustomization are held one by one.
func (d *driver) heed(ctx context.Context, s *scope) error {
	h := &s.session.holding
	if s.session.running != nil {
		return nil
	}
	if mine, err := d.undo(ctx, s); mine || err != nil {
		return err
	}
	by, early := d.holder(s)
	if by.Name == "" || s.inst.Status.Application == nil || s.current().Method != v1alpha1.MethodHelm {
		d.holders.leave(client.ObjectKeyFromObject(s.inst))
		d.letGo(s)
		s.showHold()
		return nil
	}
	seen, watched := d.holders.seen(ctx, client.ObjectKeyFromObject(s.inst), by)
	if by == h.by && early == h.early && h.requested == s.requestedAt() && !s.isDue(h.at) && !(h.held() && s.wantsElse()) && (!watched || seen == h.version) {
		s.showHold()
		return nil
	}
	h.requested = s.requestedAt()
	ref := v1alpha1.ObjectReference{Group: v1alpha1.Group, Kind: v1alpha1.ApplicationInstallationKind, Namespace: s.inst.Namespace, Name: s.inst.Name}
	holder, entry, err := hold.NewHolders(d.cluster.Dynamic()).Holding(ctx, by, ref)
	if err != nil {
		h.at = s.now // it is asked again when this is tried again
		return holdUnknown(err)
	}
	if entry == nil || early && !holder.AtWork {
		d.letGo(s)
		h.by, h.early, h.version = by, early, seen
		s.showHold()
		return nil
	}
	h.by, h.early, h.atWork, h.version, h.at = by, early, holder.AtWork, holder.Version, time.Time{}
	switch {
	case watched:
	case h.atWork:
		h.at = s.now.Add(atWorkInterval)
	default:
		h.at = s.now.Add(endedInterval)
	}
	if h.hold == nil || h.hold.RollbackUID != holder.UID {
		h.hold = s.newHold(holder, entry)
		s.showHold()
		return s.pass.Write(ctx)
	}
	h.hold.Revision = entry.ReleaseRevision
	if !h.atWork && h.hold.Holds() && s.wantsElse() {
		h.hold.Wanted = ""
	}
	if !h.held() {
		h.at = time.Time{}
	}
	s.showHold()
	return nil
}

// holder returns the rollback that the installation says it is held by. A rollback marks the objects
// before it changes them, and the installation along with them, whose watch may be behind: so early, the
// mark of an object that is not as it was counts, too, for as long as the rollback is under way.
func (d *driver) holder(s *scope) (by types.NamespacedName, early bool) {
	if by, marked := hold.By(s.inst); marked {
		return by, false
	}
	h := &s.session.holding
	if s.told != s.session.toldBefore {
		if seen, _ := d.applier.Observe(s.owner); seen.HeldBy.Name != "" && seen.HeldBy != h.by {
			return seen.HeldBy, true
		}
	}
	if h.early {
		return h.by, true
	}
	return types.NamespacedName{}, false
}

// holdUnknown returns the error for a rollback that could not be read: until it is known whether it
// holds the installation, that is left as it is.
func holdUnknown(err error) error {
	reason, advice := v1alpha1.ProgressingWithRetryReason, ""
	if apierrors.IsForbidden(err) {
		reason, advice = v1alpha1.ForbiddenReason, "; grant get on applicationrollbacks and applicationsnapshots of apps.waybill.dev"
	}
	return reconcile.Failed(reason, "left as it is: annotation %s: %w%s", v1alpha1.HeldByAnnotation, err, advice)
}

// newHold returns the hold of what is installed; if that is not known, of what is wanted.
func (s *scope) newHold(holder *hold.Holder, entry *v1alpha1.HeldObject) *v1alpha1.ReleaseHold {
	x := s.session
	if x.installed.moved == "" {
		x.installed.digest, x.installed.moved = s.digest, s.digest
		if x.prepared != nil && x.prepared.digest == s.digest {
			x.installed.moved = x.prepared.moved()
		}
	}
	wanted := x.installed.moved
	if wanted == "" { // why it is missing is reported; what comes instead of it is something else
		wanted = unknownInput
	}
	x.deadline.end()
	return &v1alpha1.ReleaseHold{
		Rollback: holder.Name, RollbackUID: holder.UID, Since: metav1.NewTime(s.now).Rfc3339Copy(), Wanted: wanted, Revision: entry.ReleaseRevision,
	}
}

// unknownInput stands for an input that could not be had when the hold was met.
const unknownInput = "unknown"

// wantsElse reports whether something else is wanted than when the hold was met. What cannot be had is
// nothing else.
func (s *scope) wantsElse() bool {
	was := s.session.holding.hold.Wanted
	if s.missing != nil || s.digest == "" || was == "" {
		return false
	}
	digest, _, whole := strings.Cut(was, "/")
	if digest == unknownInput {
		return true
	}
	got := s.session.prepared
	return digest != s.digest || whole && got != nil && got.digest == s.digest && got.moved() != was
}

// letGo ends a hold: what is wanted is fetched and installed again.
func (d *driver) letGo(s *scope) {
	x := s.session
	was := x.holding.hold
	x.holding.by, x.holding.hold, x.holding.atWork, x.holding.early = types.NamespacedName{}, nil, false, false
	if s.current().Method == v1alpha1.MethodHelm {
		x.holding.at = time.Time{}
	}
	if was.Holds() && x.tried.phase() == phaseWell {
		x.installed.digest, x.installed.moved = "", ""
		d.prepareWanted(s)
	}
}

// prepareWanted fetches what is wanted, if that is known.
func (d *driver) prepareWanted(s *scope) {
	if s.missing == nil {
		d.prepare(s)
	}
}

// restoreHold reads back, after a start, what was held: it is not installed again.
func (s *session) restoreHold(inst *v1alpha1.ApplicationInstallation) {
	s.holding.hold = inst.Status.ReleaseHold.DeepCopy()
	if s.holding.hold.Holds() && s.tried.phase() != phaseGivenUp {
		s.installed.moved = s.holding.hold.Wanted
		s.installed.digest, _, _ = strings.Cut(s.installed.moved, "/")
	}
}

// showHold shows in the status what is held.
func (s *scope) showHold() {
	h := &s.session.holding
	s.inst.Status.ReleaseHold = h.hold.DeepCopy()
	if h.looked {
		s.inst.Status.Held = h.objects
	}
	switch {
	case !h.held():
		hold.Mark(s.inst, s.inst.Status.Held)
	case h.hold.Message != "":
		conditions.MarkTrue(s.inst, v1alpha1.HeldCondition, v1alpha1.NotRolledBackReason, "%s; its objects are left as the rollback has put them: %s", h.hold.Message, s.heldWords())
	case s.heldBySnapshot():
		conditions.MarkTrue(s.inst, v1alpha1.HeldCondition, v1alpha1.ScaledToZeroReason, "%s", s.heldWords())
	default:
		conditions.MarkTrue(s.inst, v1alpha1.HeldCondition, v1alpha1.RolledBackReason, "%s", s.heldWords())
	}
}

// holdNote says, to be appended to a message, what is held; empty for nothing.
func (s *scope) holdNote() string {
	if h := &s.session.holding; h.held() {
		return "; held by " + s.heldBy()
	}
	return hold.Note(s.inst.Status.Held)
}

// heldWords says what holds the installation, and until when.
func (s *scope) heldWords() string {
	if s.heldBySnapshot() {
		return s.heldBy() + " holds the installation: nothing is installed or corrected while it is scaled to zero"
	}
	return s.heldBy() + " holds the installation: nothing is installed or corrected until something else is wanted, " +
		"or until the rollback is undone, deleted or has spec.hold: false"
}

// heldBy names who holds the installation.
func (s *scope) heldBy() string {
	by := types.NamespacedName{Namespace: s.inst.Namespace, Name: s.session.holding.hold.Rollback}
	if u := s.session.undo; u != nil && u.Name == by.Name {
		by.Namespace = s.current().Namespace
	}
	return hold.Describe(by)
}

func (s *scope) heldBySnapshot() bool {
	return strings.HasPrefix(s.session.holding.hold.Rollback, hold.BySnapshot(""))
}

// dueHeld returns what is to be done about a release that is held: it is watched and, once the rollback
// has put back its objects, it goes back to the revision that they are of.
func (d *driver) dueHeld(s *scope) *action {
	h := &s.session.holding
	known := s.session.deployed.known() != nil && len(s.session.deployed.all()) > 0
	m := d.methods[v1alpha1.MethodHelm].(*helmMethod)
	work, how := m.attend, attend
	switch {
	case !known || s.backsOff(s.session.correction):
		return nil
	case !h.atWork && h.hold.Holds() && h.hold.Revision > 0 && !h.hold.RolledBack:
		revision := int(h.hold.Revision)
		how, work = goBack, func(ctx context.Context, p plan) acted { return m.goBack(ctx, p, revision) }
	case s.session.acted:
		return nil
	}
	at, current := s.session.installed, s.current()
	return &action{kind: how, work: func(ctx context.Context, p plan) acted {
		refused := func(err error) acted { return acted{findings: findings{err: err, inventory: p.inventory}} }
		got := d.actingAs(ctx, p.of(current, at), refused, func(p plan) acted { return work(ctx, p) })
		d.noteLast(ctx, p, got)
		return got
	}}
}

// attend watches the objects of a release that is left as it is.
func (m *helmMethod) attend(ctx context.Context, p plan) acted {
	got := acted{findings: findings{inventory: slices.DeleteFunc(slices.Clone(p.inventory), isApplication)}}
	if got = m.watch(ctx, p, got, apply.Watched{}); got.err != nil {
		return got
	}
	got, _ = m.name(ctx, p, got)
	return got
}

// goBack rolls the release back to a revision. If that cannot be, what was put back stays all the same.
func (m *helmMethod) goBack(ctx context.Context, p plan, revision int) acted {
	to := release.Return{Revision: revision}
	if u := p.inst.Status.UpgradeRollback; u != nil && u.Phase == v1alpha1.UpgradeRollbackReturning {
		to.GivenUp = u.Message
	}
	result, err := m.engine.ReturnTo(ctx, p.target, identity(p), releaseOptions(p), to)
	got := acted{release: noted(p, result)}
	m.note(ctx, p, got, append(altered(p, result.Altered, "it was not used"), said(identity(p), result.Warnings, result.Kept)...))
	switch release.ReasonOf(err) {
	case "":
		got.inventory, got.returned = slices.Clone(result.Objects), true
		return m.describe(ctx, p, got, result)
	case release.ReasonNoRevision, release.ReasonAltered, release.ReasonGone, release.ReasonConflict:
		got = m.attend(ctx, p)
		got.returned, got.notReturned = true, "the Helm release could not be rolled back: "+err.Error()
		return got
	default:
		got.inventory, got.err = p.inventory, releaseError(result, err)
		return got
	}
}

// takeReturn records that a release went back to what it was, or cannot.
func (s *scope) takeReturn(a *action, result acted) {
	x := s.session
	if x.holding.hold == nil || !result.returned {
		return
	}
	x.holding.hold.RolledBack, x.holding.hold.Message = true, result.notReturned
	s.inst.Status.Begun, s.inst.Status.UpgradeSnapshot = "", nil // what is installed next is another upgrade
	x.deadline.end()
	if x.undo != nil && x.undo.Name == x.holding.hold.Rollback {
		s.takeUndone(result)
	} else {
		x.tried, x.undo = tried{attempts: attempts{requested: a.requested}}, nil
	}
	s.showHold()
}
