package applicationinstallation

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render"
)

// kind says what an action does.
type kind string

const (
	// install installs what was prepared.
	install kind = "install"
	// rollBack gives up what was installed last, because it did not become healthy.
	rollBack kind = "rollback"
	// correct corrects the objects that are known to be changed.
	correct kind = "correct"
	// compare compares every object with the cluster and corrects what differs.
	compare kind = "compare"
	// attend watches what is held, and goBack rolls it back to the revision that its objects are of.
	attend kind = "attend"
	goBack kind = "return"
	// uninstall removes everything.
	uninstall kind = "uninstall"
)

// action is one job in the cluster. An installation has at most one at a time.
type action struct {
	kind kind
	// prepared is what an install installs, otherwise nil.
	prepared *prepared
	// requested is what the annotation reconcile-at was when the action began, and attempt what it is for.
	requested string
	attempt   attempt
	// why a rollback gives up what is installed, otherwise empty.
	why  string
	work func(context.Context, plan) acted
	// doing is what the action is doing.
	doing *doing
	// unwanted is closed when the outcome is not wanted any more, which abandoned says.
	unwanted  chan struct{}
	abandoned bool
}

// abandon ends the rendering of a chart, which may take long. What follows it is brought to an end.
func (a *action) abandon() {
	if !a.abandoned {
		a.abandoned = true
		close(a.unwanted)
	}
}

// input identifies the action among those of its installation.
func (a *action) input() string {
	if a.prepared != nil {
		return string(a.kind) + " " + a.prepared.moved()
	}
	return string(a.kind)
}

// act installs what was prepared, rolls back what did not become healthy, or corrects what others
// have changed. What runs is waited for, even if something else is wanted by now; then, a chart that is
// still being rendered is not any longer.
func (d *driver) act(ctx context.Context, s *scope) error {
	s.startInterval()
	s.awaitHealthAnew()
	a := s.session.running
	switch {
	case a == nil:
		a = d.due(s)
	case a.kind == install && s.missing == nil && a.prepared.digest != s.digest:
		a.abandon()
	}
	if a == nil {
		s.session.prepared = nil
		return d.keepInventory(ctx, s)
	}
	result, done := d.perform(s, a)
	if !done {
		s.showInstall(a)
		s.pending = true
		return nil
	}
	d.take(s, a, result)
	s.tellCorrected(result)
	// That its version is gone is another thing for what is installed by now.
	gone := a.kind == install && s.missing != nil
	if s.pending = s.unfinished(); s.pending || gone || d.due(s) != nil || s.session.undoing() || s.retriesUndo() {
		d.waker.Wake(ctrl.Request{NamespacedName: s.key()})
	}
	return d.keepInventory(ctx, s)
}

// unfinished reports whether something else is wanted than what was installed, or tried, and can
// perhaps be had. Another pass sees to it before anything is said of what is installed.
func (s *scope) unfinished() bool {
	return s.unmet() == nil && !s.session.holding.held() && s.session.installed.digest != s.digest
}

// perform runs an action outside the workers. If the cluster reported a change by others while it ran,
// the installation is enqueued once more: the request for that change was used up by the end of the
// action.
func (d *driver) perform(s *scope, a *action) (acted, bool) {
	if s.session.running == nil {
		a.requested, a.unwanted, a.doing = s.requestedAt(), make(chan struct{}), d.newDoing(s.key())
		a.attempt = s.attempted(a.kind)
		s.session.running, s.session.toldBefore = a, s.told
	}
	p := d.plan(s)
	p.unwanted, p.doing, p.attempt = a.unwanted, a.doing, a.attempt
	result, done := d.acts.Do(d.cluster.Name().String(), d.jobKey(s.inst), a.input(), func(ctx context.Context) acted {
		defer p.doing.shown.Begin()()
		defer d.cluster.Hold()() // even if it is cancelled, it records how it ended

		p.inventory = p.deployed.all() // now that the job before has ended
		return a.work(d.onTerms(ctx, s.key()), p)
	})
	if !done {
		return result, false
	}
	s.session.running = nil
	if d.told.Rings(s.key()) != s.session.toldBefore {
		d.waker.Wake(ctrl.Request{NamespacedName: s.key()})
	}
	return result, true
}

// onTerms returns a context for rendering: the namespaces of all clusters take turns.
func (d *driver) onTerms(ctx context.Context, installation types.NamespacedName) context.Context {
	return render.On(ctx, render.Terms{For: d.cluster.Name().String() + "/" + installation.Namespace})
}

// due returns the action to begin now; nil if there is none.
func (d *driver) due(s *scope) *action {
	if s.session.holding.held() {
		return d.dueHeld(s)
	}
	if got := s.session.prepared; got != nil && s.mustInstall(got) {
		m := d.methods[s.method()]
		return &action{kind: install, prepared: got, work: func(ctx context.Context, p plan) acted { return d.installOnce(ctx, m, p, got.files) }}
	}
	at, current := s.session.installed, s.current()
	m := d.methods[current.Method]
	if why, due := d.overdue(s); due {
		return &action{kind: rollBack, why: why, work: func(ctx context.Context, p plan) acted {
			refused := func(err error) acted { return spared(why, err) }
			got := d.actingAs(ctx, p.of(current, at), refused, func(p plan) acted { return m.rollback(ctx, p, why) })
			d.noteLast(ctx, p, got) // it may have been cancelled after it had noted the release
			return got
		}}
	}
	if !s.comparable() {
		return nil
	}
	drifted, changed := d.drifted(s)
	how := s.correctionDue(changed)
	if how == "" {
		return nil
	}
	if how == compare {
		drifted = nil
	}
	return &action{kind: how, work: func(ctx context.Context, p plan) acted {
		return d.actingAs(ctx, p.of(current, at), notCorrected, func(p plan) acted { return m.correct(ctx, p, drifted) })
	}}
}

// correctionDue returns how to correct what others have changed, or may have; nothing if that is not
// due. After a correction that failed, everything is compared: the objects that it could not correct
// are not known to be changed any more.
func (s *scope) correctionDue(changed bool) kind {
	switch {
	case changed && s.session.correction.Failures == 0:
		return correct
	case changed || s.compareDue():
		return compare
	default:
		return ""
	}
}

// current returns the application that is installed, or else what is wanted.
func (s *scope) current() v1alpha1.ResolvedApplication {
	if app := s.inst.Status.Application; app != nil {
		return *app
	}
	return s.resolved
}

// comparable reports whether it is known what to compare the cluster with: the record of a release,
// or the source of a kustomization, which is known once this process has applied it.
func (s *scope) comparable() bool {
	switch {
	case s.inst.Status.Application == nil:
		return false
	case s.current().Method == v1alpha1.MethodKustomize:
		return s.session.installed.source.version != nil
	default:
		return s.session.deployed.known() != nil && len(s.session.deployed.all()) > 0
	}
}

// drifted returns the objects that are known to be changed, and reports whether there is anything
// to correct: where a watch was lost, anything may be changed, and perhaps another one can be had.
func (d *driver) drifted(s *scope) ([]manifest.ID, bool) {
	if s.told == s.session.toldBefore {
		return nil, false
	}
	seen, known := d.applier.Observe(s.owner)
	return seen.Drifted, known && (!seen.Settled || s.session.result.hides(seen.Unwatched))
}

// compareDue reports whether everything is to be compared with the cluster: the interval for that
// is over, a correction has failed, or nothing that was installed is watched yet, because since the
// start there was nothing to install, or nothing that could be had.
func (s *scope) compareDue() bool {
	unwatched := !s.session.acted && (s.unmet() != nil || s.session.tried.phase() != phaseWell)
	return unwatched || s.isDue(s.session.comparison.at) || s.isDue(s.session.holding.at) || s.retryDue(s.session.correction)
}

// startInterval starts the interval between full comparisons anew when the spec changes it.
func (s *scope) startInterval() {
	if interval := s.interval(); interval != s.session.comparison.interval {
		s.session.comparison = comparison{interval: interval, at: after(interval)}
	}
}

// retryDue reports whether to try again what failed: its time has come, or a user requests it,
// which also retries a failure that waits for a change.
func (s *scope) retryDue(a attempts) bool {
	return s.isDue(a.At) || a.Failures > 0 && a.requested != s.requestedAt()
}

// backsOff reports whether what failed is not to be tried again yet.
func (s *scope) backsOff(a attempts) bool { return a.At.After(s.now) && !s.retryDue(a) }

// key returns the name of the installation.
func (s *scope) key() types.NamespacedName { return client.ObjectKeyFromObject(s.inst) }

func (d *driver) jobKey(inst *v1alpha1.ApplicationInstallation) jobKey {
	return jobKey{cluster: d.cluster.Name(), name: client.ObjectKeyFromObject(inst), uid: inst.UID}
}
