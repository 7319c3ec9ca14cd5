package applicationinstallation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// gitInterval is how often a git reference that may move is looked at where the installation
// sets no reconciliationInterval.
const gitInterval = 5 * time.Minute

// prepareTimeout bounds fetching a chart or building a kustomization.
const prepareTimeout = 2 * time.Minute

// prepare fetches what is to be installed, where the cluster does not have it yet.
func (d *driver) prepare(_ context.Context, s *scope) error {
	look := s.lookDue()
	if !look && !s.needsFiles() {
		return nil
	}
	p, m := d.plan(s), d.methods[s.method()]
	got, done := d.fetches.Do(p.source.url(), d.jobKey(s), s.digest+s.requestedAt(), func(ctx context.Context) prepared {
		ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
		defer cancel()
		found, err := m.fetch(ctx, p)
		return prepared{digest: p.digest, files: found, err: err}
	})
	if !done {
		s.pending = true
		return nil
	}
	if got.err != nil {
		s.session.failed(d.kernel.Backoff)
		s.session.nextLook = s.session.retryAt
		return got.err
	}
	s.looked()
	s.session.prepared = &got
	return nil
}

// moved is the digest with what a moving source points at.
func (p *prepared) moved() string {
	moved := p.digest + "/" + p.files.revision
	if p.files.chart != nil {
		moved += "/" + p.files.chart.Digest
	}
	return moved
}

// lookDue says whether a source that moves is to be asked where it points.
func (s *scope) lookDue() bool {
	if !(origin{version: s.version}).moves() && s.inst.Spec.ReconciliationInterval.Duration <= 0 {
		return false
	}
	return s.session.looked != s.requestedAt() || s.isDue(s.session.nextLook)
}

func (s *scope) looked() {
	s.session.looked = s.requestedAt()
	interval := s.inst.Spec.ReconciliationInterval.Duration
	if interval <= 0 && (origin{version: s.version}).moves() {
		interval = gitInterval
	}
	s.session.nextLook = time.Time{}
	if interval > 0 {
		s.session.nextLook = time.Now().Add(interval + time.Duration(rand.Int64N(int64(interval)/10+1)))
	}
}

func (s *scope) requestedAt() string { return s.inst.Annotations[v1alpha1.ReconcileAtAnnotation] }

// needsFiles says whether there is something to install that is not at hand.
func (s *scope) needsFiles() bool {
	if s.session.prepared != nil && s.session.prepared.digest == s.digest {
		return false
	}
	return s.session.result.input != s.digest || s.isDue(s.session.retryAt)
}

// recordIntent writes what is about to be installed before the first write to the cluster:
// after a crash at any later line, it is known what to uninstall.
func (d *driver) recordIntent(ctx context.Context, s *scope) error {
	got := s.session.prepared
	if got == nil || got.moved() == s.session.attempted {
		return nil
	}
	resolved := s.resolved
	resolved.Revision = got.files.revision
	if current := s.inst.Status.Application; current == nil || *current != resolved {
		conditions.MarkReconciling(s.inst, v1alpha1.ProgressingReason, "installing %s %s", resolved.Name, resolved.Version)
	}
	s.inst.Status.Application = &resolved
	return s.pass.Write(ctx)
}

// action is one job in the cluster.
type action struct {
	// input identifies it: an action that is under way is taken up again by it.
	input string
	work  func(context.Context, plan) acted
	// installs says that it brings what was prepared.
	installs bool
}

// act installs what was prepared, rolls back what did not become healthy, or puts right what
// others have changed.
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
	s.session.giveUp = ""
	if next.installs {
		s.session.attempted, s.session.prepared = next.input, nil
		result.input = s.digest
		s.session.healthSince = time.Now()
	}
	d.take(s, result)
	s.tellCorrected(result)
	if result.gone {
		s.session.attempted, s.session.result.input, s.pending = "", "", true
		d.waker.Wake(ctrl.Request{NamespacedName: s.key()})
	}
	return nil
}

// do runs an action beside the workers. Where the cluster told of a change by others while it
// ran, the installation is looked at once more: that wake was spent on the end of the action.
func (d *driver) do(s *scope, input string, work func(context.Context, plan) acted) (acted, bool) {
	if !s.session.acting {
		s.session.acting, s.session.toldBefore = true, d.told.Rings(s.key())
	}
	p := d.plan(s)
	result, done := d.acts.Do(d.cluster.Name().String(), d.jobKey(s), input, func(ctx context.Context) acted {
		p.inventory = p.ledger.all() // now that the job before has ended
		return work(ctx, p)
	})
	if done {
		s.session.acting = false
		if d.told.Rings(s.key()) != s.session.toldBefore {
			d.waker.Wake(ctrl.Request{NamespacedName: s.key()})
		}
	}
	return result, done
}

// next is the action that is due; nil where there is none.
func (d *driver) next(s *scope) *action {
	m := d.methods[s.method()]
	if got := s.session.prepared; got != nil && (got.moved() != s.session.attempted || s.isDue(s.session.retryAt)) {
		return &action{got.moved(), func(ctx context.Context, p plan) acted { return d.installOnce(ctx, m, p, got.files) }, true}
	}
	if why := s.session.giveUp; why != "" {
		return &action{"rollback", func(ctx context.Context, p plan) acted { return m.rollback(ctx, p, why) }, false}
	}
	if drifted, due := d.drifted(s); due {
		return &action{"correct", func(ctx context.Context, p plan) acted { return m.correct(ctx, p, drifted) }, false}
	}
	return nil
}

// drifted says whether there is anything to put right, and which objects are known to be
// changed; a correction that is under way is taken up again until it has ended.
func (d *driver) drifted(s *scope) ([]manifest.ID, bool) {
	if !s.session.acting && d.told.Rings(s.key()) == s.session.toldBefore {
		return nil, false
	}
	seen, known := d.applier.Observe(s.owner)
	return seen.Drifted, s.session.acting || known && !seen.Settled
}

// installOnce makes the namespace, installs, and describes the result as an Application.
func (d *driver) installOnce(ctx context.Context, m method, p plan, f *files) acted {
	if err := d.ensureNamespace(ctx, p); err != nil {
		return acted{err: err}
	}
	return m.install(ctx, p, f)
}

// take keeps the result of an action.
func (d *driver) take(s *scope, result acted) {
	if result.input == "" {
		result.input = s.session.result.input
	}
	s.session.result = result
	if result.release != nil {
		s.inst.Status.Release = result.release
	}
	switch {
	case result.err != nil && reconcile.IsStalled(result.err):
		s.session.failures++
		s.session.retryAt = time.Time{}
	case result.err != nil || len(result.problems) > 0:
		s.session.failed(d.kernel.Backoff)
	default:
		s.session.succeeded()
	}
	s.inst.Status.Failures = int32(s.session.failures)
}

// key is the name of the installation.
func (s *scope) key() types.NamespacedName { return client.ObjectKeyFromObject(s.inst) }

func (d *driver) jobKey(s *scope) jobKey {
	return jobKey{cluster: d.cluster.Name(), name: s.key(), uid: s.inst.UID}
}

// prefixed names the release in the message of an error.
func prefixed(what string, p plan, err error) error {
	return fmt.Errorf("%s %s %s in namespace %s: %w", what, p.resolved.Name, p.resolved.Version, p.resolved.Namespace, err)
}
