package release

import (
	"context"
	"fmt"

	helmrelease "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/keyed"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/helm"
)

// Engine acts on releases. It is safe for concurrent use; each release has at most one action at a
// time.
type Engine struct {
	versions versions
	renderer Renderer
	busy     keyed.Map[busyKey, bool]
	resuming resumptions
	memo     *Memo
}

type busyKey struct{ host, release string }

// NewEngine returns an engine that renders charts in this process.
func NewEngine() *Engine {
	return &Engine{renderer: helm.Here{}, memo: NewMemo()}
}

// RenderedBy has r render charts; nil changes nothing. It must be called before the first action.
func (e *Engine) RenderedBy(r Renderer) *Engine {
	if r != nil {
		e.renderer = r
	}
	return e
}

// Remembering has the engine use a Memo that those of other clusters use as well; nil changes nothing. It must
// be called before the first action.
func (e *Engine) Remembering(m *Memo) *Engine {
	if m != nil {
		e.memo = m
	}
	return e
}

// Result describes a release after it was observed or acted upon.
type Result struct {
	// Decision is the last action taken, and why.
	Decision
	// Release as it stands; its Digest is that of the Desired.
	Release v1alpha1.ReleaseStatus
	// Gone says that the release was uninstalled: a failed install was undone, or what a rollback gave
	// up had nothing before it. Release is empty then, as it is when an action was refused before it
	// was recorded.
	Gone bool
	// Adopted says that the release was as desired already, and had not been noted.
	Adopted bool
	// Objects of its manifest, without hooks and CRDs.
	Objects []manifest.ID
	// Written has the objects that the action wrote, or found to be right, as the API server returned
	// them.
	Written map[manifest.ID]metav1.Object
	// Untouched are the objects that an upgrade neither read nor wrote, because they do not differ between the
	// revisions, and Desired.UntouchedAt vouched for them.
	Untouched []manifest.ID
	// Kept are objects of an earlier revision that were not deleted, and why.
	Kept []Kept
	// Altered are revisions whose records are not as Waybill wrote them: they were neither run nor
	// applied. A revision of Waybill's own that was noted once, and is not any more, is none of them.
	Altered []int
	// Ignored are the names of Secrets that are labelled as records of the release and cannot be: as
	// their names, or the numbers of their revisions, say.
	Ignored []string
	// Warnings of the chart's schema and of the API server, and notes about what was left out.
	Warnings []string
}

// maxSteps is how many actions may follow one another until a release is as desired: interrupted
// actions, including uninstalls, are ended first, and an altered record shows only when it is read.
const maxSteps = 4

// Ensure brings a release to the desired state: it observes, decides and acts until there is
// nothing more to do. A second call changes nothing, at the cost of two requests. The result is
// filled as far as it got, even if there is an error. The error is an Error; the end of ctx ends
// the action, which is then recorded as failed and taken up again by the next call.
func (e *Engine) Ensure(ctx context.Context, t Target, d Desired) (Result, error) {
	digest, err := d.Digest()
	if err != nil {
		return Result{}, err
	}
	var result Result
	altered := false
	for range maxSteps {
		observed, err := e.Observe(ctx, t, d.Identity)
		if err != nil {
			return result, err
		}
		observed.Altered = altered
		decision := Decide(observed, d.Identity, digest)
		step, err := e.Act(ctx, t, d, observed, decision)
		if decision.Action == ActionNone && ReasonOf(err) == ReasonAltered {
			altered = true
			continue
		}
		if step.Release.Name != "" || err != nil {
			result = step
		}
		result.Decision = decision
		if err != nil || decision.final() {
			return result, err
		}
	}
	return result, &Error{Reason: ReasonBusy, Err: fmt.Errorf("release %s changes while it is being worked on", d.Identity)}
}

// final reports whether the release is as desired once the action has succeeded.
func (d Decision) final() bool {
	return d.Action != ActionUnlock && d.Action != ActionFinishUninstall
}

// Act takes one action on a release and, with Atomic, undoes a revision that it made and that failed;
// one that could only not be recorded or described is none. observed is what the decision was based
// on; if the release has changed since, the action just fails.
func (e *Engine) Act(ctx context.Context, t Target, d Desired, observed Observed, decision Decision) (Result, error) {
	act, ok := actions[decision.Action]
	if !ok {
		return Result{}, &Error{Reason: ReasonUnavailable, Err: fmt.Errorf("unknown action %q", decision.Action)}
	}
	j := job{engine: e, target: t, desired: d, observed: observed}
	result, err := inSession(ctx, j, func(ctx context.Context, s *session) (Result, error) { return act(ctx, s, decision) })
	if err != nil && d.Options.undoes(decision.Action) && result.Release.Status == string(helmrelease.StatusFailed) {
		return e.undo(ctx, j, decision.Action, result, err)
	}
	return result, err
}

// actions are the functions that take each action. They run in a session and leave the release
// recorded.
var actions = map[Action]func(context.Context, *session, Decision) (Result, error){
	ActionNone:            keep,
	ActionInstall:         install,
	ActionUpgrade:         upgrade,
	ActionUnlock:          unlock,
	ActionFinishUninstall: finishUninstall,
	ActionRefuse:          refuse,
	ActionWait:            standBack,
}

// job is what to do about one release.
type job struct {
	engine   *Engine
	target   Target
	desired  Desired // identity and options only, if a release is only removed or corrected
	observed Observed
	// clock is that of the action, set by inSession.
	clock *clock
}

// inSession runs do in a session of its own, within the timeout of the options.
func inSession[T any](ctx context.Context, j job, do func(context.Context, *session) (T, error)) (T, error) {
	j.clock = &clock{}
	return run(ctx, j, func(ctx context.Context) (T, error) {
		s, err := newSession(ctx, j)
		if err != nil {
			var none T
			return none, err
		}
		defer s.close()
		return do(ctx, s)
	})
}

// run takes an action on a release, within its timeout.
func run[T any](ctx context.Context, j job, act func(context.Context) (T, error)) (T, error) {
	e, id, timeout := j.engine, j.desired.Identity, j.desired.Options.timeout()
	key := busyKey{host: j.target.Config().Host, release: id.String()}
	if !e.begin(key) {
		var none T
		return none, &Error{Reason: ReasonBusy, Err: fmt.Errorf("an earlier action on release %s has not ended", id)}
	}
	defer e.end(key)
	ctx, stop := j.clock.start(ctx, timeout)
	defer stop()
	return guarded(ctx, act)
}

// guarded turns a panic into an error: charts and records of releases are written by others.
func guarded[T any](ctx context.Context, act func(context.Context) (T, error)) (result T, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &Error{Reason: ReasonRender, Err: fmt.Errorf("helm failed unexpectedly: %v", r)}
		}
	}()
	return act(ctx)
}

func (e *Engine) begin(key busyKey) bool {
	return !e.busy.Change(key, func(bool) (bool, bool) { return true, true })
}

func (e *Engine) end(key busyKey) { e.busy.Drop(key) }

// keep reads the current release.
func keep(ctx context.Context, s *session, _ Decision) (Result, error) {
	current, err := s.current()
	var adopted *helmrelease.Release
	if ReasonOf(err) == ReasonAltered {
		var failure error
		if adopted, failure = s.adopt(ctx); adopted != nil || failure != nil {
			current, err = adopted, failure
		}
	}
	if err != nil {
		return Result{}, s.failed("read release", err)
	}
	result, err := s.result(current)
	result.Adopted = adopted != nil
	return result, err
}

// refuse leaves alone a release of another owner.
func refuse(_ context.Context, s *session, d Decision) (Result, error) {
	return Result{}, &Error{Reason: ReasonConflict, Err: fmt.Errorf("release %s: %s", s.id, d.Why)}
}

// standBack leaves alone a release that another Helm client is working on.
func standBack(_ context.Context, s *session, d Decision) (Result, error) {
	return Result{}, &Error{Reason: ReasonBusy, Err: fmt.Errorf("release %s: %s", s.id, d.Why)}
}
