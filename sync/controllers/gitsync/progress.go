package gitsync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/excerpt"
)

// tellEvery is the minimum time between two writes of how far a GitSync is, however many clusters it
// delivers to.
const tellEvery = 5 * time.Second

// tellProgress writes how far the deliveries are to the conditions, once one of them takes long.
func (s *scope) tellProgress(ctx context.Context) error {
	i, text := s.session.record.intent, s.progress()
	if i == nil {
		return nil
	}
	i.tellDue = time.Time{}
	if text == "" || text == i.told {
		return nil
	}
	if due := i.toldAt.Add(tellEvery); s.now.Before(due) {
		i.tellDue = due
		return nil
	}
	i.told, i.toldAt = text, s.now
	return i.tell(ctx, text)
}

// progress returns how far the deliveries are; empty if none takes long, or if the condition Ready is to
// stay as it is.
func (s *scope) progress() string {
	if !s.pending || !s.outdatesReady() {
		return ""
	}
	slow, waits, applied, clusters := false, "", 0, 0
	for _, t := range s.targets() {
		if !t.state.Usable() || t.leaving {
			continue
		}
		slow = slow || t.state.Slow
		if t.state.Overdue {
			waits = t.prefix() + "waiting until deliveries of other GitSyncs have ended"
		}
		applied, clusters = applied+t.state.Applied, clusters+1
	}
	switch {
	case slow:
		text := fmt.Sprintf("applying %s: %s of %s", s.session.desired.source.revision, excerpt.Amount(applied), excerpt.Count(s.session.desired.count*clusters, "object"))
		if s.gs.Spec.ClusterSelector != nil {
			text += " in " + excerpt.Count(clusters, "cluster")
		}
		return text
	case waits != "" && !conditions.Has(s.gs, v1alpha1.ReadyCondition):
		return waits
	default:
		return ""
	}
}

// outdatesReady reports whether what is being delivered is something else than what the condition Ready
// is about. A further try of what has failed, and a correction, leave it as it is until they have ended.
func (s *scope) outdatesReady() bool {
	ready := conditions.Get(s.gs, v1alpha1.ReadyCondition)
	switch {
	case ready == nil, ready.Status == metav1.ConditionUnknown:
		return true
	case ready.Status == metav1.ConditionFalse:
		return s.session.reported != "" && s.session.reported != s.session.desired.digest
	default:
		return s.gs.Status.Revision != s.session.desired.source.revision.String() || s.gs.Status.ObservedGeneration != s.gs.Generation
	}
}

// tell writes to the conditions how far the deliveries are.
func (i *intent) tell(ctx context.Context, text string) error {
	i.writing.Lock()
	defer i.writing.Unlock()
	markProgress(i.gs, text)
	return i.reconciler.kernel.Record(ctx, i.reconciler.Client, i.gs)
}

// tellFetching has a new GitSync say that its first fetch of the repository takes long.
func (s *scope) tellFetching() {
	until := s.waitsUntil()
	long := !until.IsZero() && !s.now.Before(until.Add(patience))
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
func withinTimeout(ctx context.Context, result apply.Result, counts *apply.Progress, timeout time.Duration) apply.Result {
	if !timedOut(ctx, result) {
		return result
	}
	done := "nothing is applied yet"
	if applied, all := counts.Counts(); all > 0 {
		done = fmt.Sprintf("%s of %s are applied", excerpt.Amount(applied), excerpt.Count(all, "object"))
	}
	result.Err = fmt.Errorf("applying took longer than spec.timeout (%s): %s, and the next attempt continues from there; increase spec.timeout to give it more time", timeout, done)
	return result
}

// timedOut reports whether the time of a delivery is over, and that has ended it.
func timedOut(ctx context.Context, result apply.Result) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) && errors.Is(result.Err, context.DeadlineExceeded)
}
