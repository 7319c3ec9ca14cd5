package gitsync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/reconcile"
)

const (
	// tellEvery is the minimum time between two writes of how far a GitSync is, however many clusters
	// it delivers to.
	tellEvery = 5 * time.Second
	// turnPatience is how long a delivery may wait for its turn before a GitSync that has no condition
	// Ready yet says so.
	turnPatience = 30 * time.Second
)

// progress is how far the deliveries to one cluster are.
type progress struct {
	counts apply.Progress
	shown  *reconcile.Progress[int]
}

func (r *Reconciler) newProgress(key reconcile.Key) *progress {
	p := &progress{}
	p.shown = reconcile.NewProgress(
		func() int { return reconcile.Coarse(p.counts.Counts()) },
		func() { r.waker.Wake(ctrl.Request{NamespacedName: key.NamespacedName}) })
	return p
}

// applied returns how many objects are applied: of a delivery that is under way, as last shown, so that
// passes for other reasons show the same.
func (p *progress) applied() int {
	if shown, ok := p.shown.Shown(); ok {
		return shown
	}
	return reconcile.Coarse(p.counts.Counts())
}

// tellProgress writes how far the deliveries are to the conditions, once one of them takes long.
func (s *scope) tellProgress(ctx context.Context) error {
	s.session.tellDue = time.Time{}
	text := s.progress()
	if text == "" || text == s.session.told || s.session.intent == nil {
		return nil
	}
	if due := s.session.toldAt.Add(tellEvery); s.now.Before(due) {
		s.session.tellDue = due
		return nil
	}
	s.session.told, s.session.toldAt = text, s.now
	return s.session.intent.tell(ctx, text)
}

// progress returns how far the deliveries are; empty if none takes long, or if the condition Ready is to
// stay as it is.
func (s *scope) progress() string {
	if !s.pending || !s.outdatesReady() {
		return ""
	}
	slow, waits, applied, clusters := false, "", 0, 0
	for _, t := range s.targets() {
		if t.applier == nil || t.leaving || t.progress == nil {
			continue
		}
		_, shows := t.progress.shown.Shown()
		slow = slow || shows
		if s.awaitsTurn(t) && !s.now.Before(t.tried.Add(turnPatience)) {
			waits = t.prefix() + "waiting until deliveries of other GitSyncs have ended"
		}
		applied, clusters = applied+t.progress.applied(), clusters+1
	}
	switch {
	case slow:
		text := fmt.Sprintf("applying %s: %s of %s", s.session.source.revision, reconcile.Amount(applied), counted(s.session.count*clusters, "object"))
		if s.gs.Spec.ClusterSelector != nil {
			text += " in " + counted(clusters, "cluster")
		}
		return text
	case waits != "" && !conditions.Has(s.gs, v1alpha1.ReadyCondition):
		return waits
	default:
		return ""
	}
}

// awaitsTurn reports whether a delivery was asked for and has not begun.
func (s *scope) awaitsTurn(t *target) bool {
	return t.delivering && !t.leaving && t.progress != nil && !t.progress.shown.Running()
}

// outdatesReady reports whether what is being delivered is something else than what the condition Ready
// is about. A further try of what has failed, and a correction, leave it as it is until they have ended.
func (s *scope) outdatesReady() bool {
	ready := conditions.Get(s.gs, v1alpha1.ReadyCondition)
	switch {
	case ready == nil, ready.Status == metav1.ConditionUnknown:
		return true
	case ready.Status == metav1.ConditionFalse:
		return s.session.reported != "" && s.session.reported != s.session.digest
	default:
		return s.gs.Status.Revision != s.session.source.revision.String() || s.gs.Status.ObservedGeneration != s.gs.Generation
	}
}

// tell writes to the conditions how far the deliveries are.
func (i *intent) tell(ctx context.Context, text string) error {
	i.writing.Lock()
	defer i.writing.Unlock()
	markProgress(i.gs, text)
	return i.reconciler.kernel.Record(ctx, i.reconciler.Client, i.gs)
}

// tellFetching has a new GitSync say that its first look at the repository takes long.
func (s *scope) tellFetching() {
	long := !s.session.waitsUntil.IsZero() && !s.now.Before(s.session.waitsUntil.Add(patience))
	if long && !conditions.Has(s.gs, v1alpha1.ReadyCondition) {
		markProgress(s.gs, "fetching the repository, and rendering spec.path")
	}
}

func markProgress(gs *v1alpha1.GitSync, text string) {
	conditions.MarkUnknown(gs, v1alpha1.ReadyCondition, v1alpha1.ProgressingReason, "%s", text)
	conditions.MarkReconciling(gs, v1alpha1.ProgressingReason, "%s", text)
}

// withinTimeout returns the result of a delivery. If it has ended because spec.timeout is over, its
// error says so: the API server is not to blame.
func (p *progress) withinTimeout(ctx context.Context, result apply.Result, timeout time.Duration) apply.Result {
	if !timedOut(ctx, result) {
		return result
	}
	done := "nothing is applied yet"
	if applied, all := p.counts.Counts(); all > 0 {
		done = fmt.Sprintf("%s of %s are applied", reconcile.Amount(applied), counted(all, "object"))
	}
	result.Err = fmt.Errorf("applying took longer than spec.timeout (%s): %s, and the next attempt continues from there; increase spec.timeout to give it more time", timeout, done)
	return result
}

// timedOut reports whether the time of a delivery is over, and that has ended it.
func timedOut(ctx context.Context, result apply.Result) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(result.Err, context.DeadlineExceeded)
}
