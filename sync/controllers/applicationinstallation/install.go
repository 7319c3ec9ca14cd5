package applicationinstallation

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/content"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// gitInterval is how often a git reference that may move is looked at if the installation sets no
// reconciliationInterval.
const gitInterval = 5 * time.Minute

// prepareTimeout bounds fetching a chart or building a kustomization.
const prepareTimeout = 2 * time.Minute

// prepare fetches what is to be installed if the cluster does not have it yet, and looks whether a
// moving source has moved. Neither blocks what is installed already: while the source is asked, and
// if that fails, it is kept as it is.
func (d *driver) prepare(_ context.Context, s *scope) error {
	needed := s.needsFiles()
	if !needed && !s.lookDue() || s.lookHeld() {
		return nil
	}
	p, m := d.plan(s), d.methods[s.method()]
	got, done := d.fetches.Do(p.source.url(), d.jobKey(s), s.asked(), func(ctx context.Context) prepared {
		ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
		defer cancel()
		found, err := m.fetch(ctx, p)
		return prepared{digest: p.digest, source: p.source, files: found, err: err}
	})
	if !done {
		s.looking, s.wanting = true, needed
		s.pending = needed && !s.session.acted && s.lookErr() == nil
		return nil
	}
	s.looked(got.err, d.kernel.Backoff)
	if got.err == nil {
		s.session.prepared = &got
	}
	return nil
}

// moved returns the digest together with what a moving source points at.
func (p *prepared) moved() string {
	moved := p.digest + "/" + p.files.revision
	if p.files.chart != nil {
		moved += "/" + p.files.chart.Digest
	}
	return moved
}

// moves reports whether the source can change without a change of the definition.
func (s *scope) moves() bool { return origin{version: s.version}.moves() }

// lookDue reports whether it is time to ask a moving source where it points.
func (s *scope) lookDue() bool {
	return s.moves() && (s.session.asked != s.asked() || s.isDue(s.session.look.At))
}

// lookErr returns the error that the source was last asked with; nil if something else is to be
// asked now.
func (s *scope) lookErr() error {
	if s.session.asked != s.asked() {
		return nil
	}
	return s.session.lookErr
}

// lookHeld reports whether the source must not be asked yet, because the same question has just
// failed.
func (s *scope) lookHeld() bool { return s.lookErr() != nil && !s.isDue(s.session.look.At) }

// asked identifies the question to a source: a different question is asked at once.
func (s *scope) asked() string {
	question := []string{s.digest, s.requestedAt(), s.interval().String()}
	for _, secret := range []*content.Content{s.credentials, s.authorities} {
		if secret != nil {
			question = append(question, secret.Hash)
		}
	}
	return strings.Join(question, " ")
}

// looked records how asking the source ended, and when that is due again.
func (s *scope) looked(err error, backoff func(int) time.Duration) {
	if err == nil || s.session.asked != s.asked() {
		s.session.look = reconcile.Retry{}
	}
	s.session.asked, s.session.lookErr = s.asked(), err
	switch {
	case reconcile.IsStalled(err):
		s.session.look.At = time.Time{}
	case err != nil:
		s.session.look.Failed(backoff)
	case s.moves():
		s.session.look.At = after(cmp.Or(s.interval(), gitInterval))
	}
}

func (s *scope) requestedAt() string { return s.inst.Annotations[v1alpha1.ReconcileAtAnnotation] }

// interval returns the time between full comparisons with the cluster, and between looks; zero for
// none.
func (s *scope) interval() time.Duration { return max(s.inst.Spec.ReconciliationInterval.Duration, 0) }

// after returns the end of an interval that starts now, up to a tenth later so that not all
// installations of a cluster are due at once. It returns the zero time if there is no interval.
func after(interval time.Duration) time.Time {
	if interval == 0 {
		return time.Time{}
	}
	return time.Now().Add(interval + time.Duration(rand.Int64N(int64(interval)/10+1)))
}

// retryDue reports whether to try again what failed: its time has come, or somebody asks for it,
// which also retries a failure that waits for a change.
func (s *scope) retryDue() bool {
	failed := s.session.result.err != nil || len(s.session.result.problems) > 0
	return s.isDue(s.session.retry.At) || failed && s.requestedAt() != s.session.requested
}

// compareDue reports whether the interval after which everything is compared with the cluster is
// over.
func (s *scope) compareDue() bool {
	if interval := s.interval(); interval != s.session.interval {
		s.session.interval, s.session.compareAt = interval, after(interval)
	}
	return s.isDue(s.session.compareAt)
}

// needsFiles reports whether there is something to install that is not at hand.
func (s *scope) needsFiles() bool {
	if s.session.prepared != nil && s.session.prepared.digest == s.digest {
		return false
	}
	return s.session.result.input != s.digest || s.retryDue()
}

// recordIntent records what is about to be installed before the first write to the cluster: after a
// crash at any later line, it is known what to uninstall.
func (d *driver) recordIntent(ctx context.Context, s *scope) error {
	got := s.session.prepared
	if got == nil || got.digest != s.digest || got.moved() == s.session.attempted {
		return nil
	}
	resolved := s.resolved
	resolved.Revision = got.files.revision
	if current := s.inst.Status.Application; current == nil || *current != resolved {
		conditions.MarkReconciling(s.inst, v1alpha1.ProgressingReason, "installing %s %s", resolved.Name, resolved.Version)
		s.session.begun = true
	}
	s.inst.Status.Application = &resolved
	return s.pass.Write(ctx)
}

// action is one job in the cluster.
type action struct {
	// input identifies it: a running action is found again by its input.
	input string
	work  func(context.Context, plan) acted
	// installs says that the action installs what was prepared.
	installs bool
}

// act installs what was prepared, rolls back what did not become healthy, or corrects what others
// have changed.
func (d *driver) act(_ context.Context, s *scope) error {
	next := d.next(s)
	if next == nil {
		s.session.prepared = nil
		return nil
	}
	result, done := d.do(s, next.input, next.work)
	if !done {
		s.pending = true
		return nil
	}
	switch {
	case next.installs:
		result.input = s.installed(next.input)
		s.awaitHealth(result)
	case next.input == rollBack && reconcile.IsStalled(result.err): // otherwise it is tried again
		s.session.healthAwaited = time.Time{}
	}
	result.lasts = result.err != nil && (next.installs || next.input == rollBack)
	if next.installs || next.input == compareEverything {
		s.session.compareAt = after(s.interval())
	}
	d.take(s, result)
	s.tellCorrected(result)
	if result.gone {
		s.session.attempted, s.session.result.input, s.pending = "", "", true
		d.waker.Wake(ctrl.Request{NamespacedName: s.key()})
	}
	return nil
}

// installed records that what was prepared was installed, or tried, and returns its digest.
func (s *scope) installed(moved string) string {
	got := s.session.prepared
	s.session.attempted, s.session.prepared = moved, nil
	s.session.installed = installed{source: got.source, revision: got.files.git}
	return got.digest
}

// kept returns what is installed, by which it is corrected.
func (s *scope) kept() installed {
	kept := s.session.installed
	kept.method, kept.resolved = s.method(), s.resolved
	if app := s.inst.Status.Application; app != nil {
		kept.method, kept.resolved = app.Method, *app
	}
	return kept
}

// do runs an action outside the workers. If the cluster reported a change by others while it ran,
// the installation is reconciled once more: the wake for that change was spent on the end of the
// action.
func (d *driver) do(s *scope, input string, work func(context.Context, plan) acted) (acted, bool) {
	if s.session.acting != input {
		s.session.acting, s.session.toldBefore, s.session.requested = input, s.told, s.requestedAt()
	}
	p := d.plan(s)
	result, done := d.acts.Do(d.cluster.Name().String(), d.jobKey(s), input, func(ctx context.Context) acted {
		p.inventory = p.deployed.all() // now that the job before has ended
		return work(ctx, p)
	})
	if done {
		s.session.acting = ""
		if d.told.Rings(s.key()) != s.session.toldBefore || s.isDue(s.session.compareAt) {
			d.waker.Wake(ctrl.Request{NamespacedName: s.key()})
		}
	}
	return result, done
}

// Inputs of the actions that install nothing new.
const (
	rollBack          = "rollback"
	correctDrift      = "correct"
	compareEverything = "compare"
)

// next returns the action that is running or due; nil if there is none.
func (d *driver) next(s *scope) *action {
	if got := s.session.prepared; got != nil && s.installs(got) {
		m := d.methods[s.method()]
		return &action{got.moved(), func(ctx context.Context, p plan) acted { return d.installOnce(ctx, m, p, got.files) }, true}
	}
	kept := s.kept()
	m := d.methods[kept.method]
	if why, due := d.overdue(s); due {
		return &action{rollBack, func(ctx context.Context, p plan) acted { return m.rollback(ctx, p.of(kept), why) }, false}
	}
	if drifted, due := d.drifted(s); due {
		return &action{correctDrift, func(ctx context.Context, p plan) acted { return m.correct(ctx, p.of(kept), drifted) }, false}
	}
	if s.session.acting == compareEverything || s.comparable() && (s.compareDue() || s.compareInstead()) {
		return &action{compareEverything, func(ctx context.Context, p plan) acted { return m.correct(ctx, p.of(kept), nil) }, false}
	}
	return nil
}

// installs reports whether what was prepared is being installed, or is to be.
func (s *scope) installs(got *prepared) bool {
	return s.session.acting == got.moved() || got.digest == s.digest && (got.moved() != s.session.attempted || s.retryDue())
}

// overdue reports whether what was installed last must be given up, because it has never been
// healthy and its time is over, and why. A running rollback is due until it has ended.
func (d *driver) overdue(s *scope) (string, bool) {
	if s.session.acting == rollBack {
		return "", true
	}
	o, result := s.options(), s.session.result
	if o == nil || !o.Atomic || !s.session.acted || !s.isDue(s.healthDue()) || result.err != nil || len(result.problems)+len(result.waiting) > 0 {
		return "", false
	}
	seen, known := d.applier.Observe(s.owner)
	return overdueMessage(o, seen.Health), known && !seen.Health.Healthy()
}

// compareInstead reports whether what is installed must be compared with the cluster because what
// is wanted cannot be had: after a start, in order to watch the release at all, and when a
// correction has failed.
func (s *scope) compareInstead() bool {
	if s.lookErr() == nil {
		return false
	}
	if s.session.acted {
		return !s.session.result.lasts && s.retryDue()
	}
	return true
}

// comparable reports whether it is known what to compare the cluster with: the record of a release,
// or the source of a kustomization, which is known once this process has applied it.
func (s *scope) comparable() bool {
	if s.kept().method == v1alpha1.MethodKustomize {
		return s.session.installed.source.version != nil
	}
	return s.inst.Status.Application != nil && s.session.deployed.known() != nil && len(s.session.deployed.all()) > 0
}

// drifted returns the objects that are known to be changed, and reports whether there is anything
// to correct. A running correction is due until it has ended.
func (d *driver) drifted(s *scope) ([]manifest.ID, bool) {
	correcting := s.session.acting == correctDrift
	if s.session.acting == compareEverything || !correcting && s.told == s.session.toldBefore {
		return nil, false
	}
	seen, known := d.applier.Observe(s.owner)
	return seen.Drifted, correcting || known && !seen.Settled
}

// installOnce creates the namespace if asked to, installs, and describes the result as an
// Application.
func (d *driver) installOnce(ctx context.Context, m method, p plan, f *files) acted {
	if err := d.ensureNamespace(ctx, p); err != nil {
		return acted{err: err}
	}
	return m.install(ctx, p, f)
}

// take records the result of an action.
func (d *driver) take(s *scope, result acted) {
	before, kept := s.session.result, false
	if result.input == "" {
		result.input = before.input
		kept = before.lasts && !result.lasts && !result.gone
	}
	if kept {
		result.err, result.lasts = before.err, true
	}
	s.session.acted, s.session.result = true, result
	if result.release != nil {
		s.inst.Status.Release = result.release
	}
	switch {
	case kept: // and with it the time of the next try
	case result.err != nil && reconcile.IsStalled(result.err):
		s.session.retry = reconcile.Retry{Failures: s.session.retry.Failures + 1}
	case result.err != nil || len(result.problems) > 0:
		s.session.retry.Failed(d.kernel.Backoff)
	default:
		s.session.retry = reconcile.Retry{}
	}
	s.inst.Status.Failures = int32(s.session.retry.Failures)
}

// key returns the name of the installation.
func (s *scope) key() types.NamespacedName { return client.ObjectKeyFromObject(s.inst) }

func (d *driver) jobKey(s *scope) jobKey {
	return jobKey{cluster: d.cluster.Name(), name: s.key(), uid: s.inst.UID}
}

// prefixed names the application, its version and its namespace in the message of an error.
func prefixed(what string, p plan, err error) error {
	return fmt.Errorf("%s %s %s in namespace %s: %w", what, p.resolved.Name, p.resolved.Version, p.resolved.Namespace, err)
}
