package applicationsnapshot

import (
	"slices"
	"time"

	"waybill.dev/waybill/api/v1alpha1"
)

const (
	// mostInterrupted is how often a post-hook is run again in a container because waybill-sync ended while it
	// ran.
	mostInterrupted = 3
	// mostUnknown is how long a post-hook is run again in a container because it is not known whether it ran, as
	// while a kubelet restarts.
	mostUnknown = 5 * time.Minute

	minPause = time.Second
	maxPause = 30 * time.Second
)

// attempts are how the ExecutionHooks of one post-hook have ended, as far as they are added in their order. It follows
// from their status only, so that each pass, and each process, comes to the same.
type attempts struct {
	selected []v1alpha1.QuiescedContainer
	// left are the containers that it still has to run in: first those in which it has not been tried.
	left []v1alpha1.QuiescedContainer
	// failures are how it ended in those that it failed in, by key.
	failures map[string]v1alpha1.HookRun
	// due is when the next one may begin, and why says what happened in the last container of which it is not known
	// whether it ran.
	due time.Time
	why string

	interrupted map[string]int
	unknown     map[string]time.Time // since when
	pause       time.Duration
}

func newAttempts(selected []v1alpha1.QuiescedContainer) *attempts {
	return &attempts{
		selected: selected, left: selected, failures: map[string]v1alpha1.HookRun{},
		interrupted: map[string]int{}, unknown: map[string]time.Time{}, pause: minPause,
	}
}

// add adds an ExecutionHook that has ended. It returns how that ended in the containers that it is not run in again, and
// did not succeed in.
func (a *attempts) add(run *v1alpha1.ExecutionHook) map[string]v1alpha1.HookRun {
	var pending, again []v1alpha1.QuiescedContainer
	failures := map[string]v1alpha1.HookRun{}
	a.due = time.Time{}
	for i, r := range run.Status.Runs {
		k := key(run.Spec.Pods[i].Name, run.Spec.Pods[i].Container)
		at := slices.IndexFunc(a.selected, func(c v1alpha1.QuiescedContainer) bool { return key(c.Name, c.Container) == k })
		switch {
		case at >= 0 && r.State == v1alpha1.HookRunPending:
			pending = append(pending, a.selected[at])
		case at >= 0 && a.isWorthAnother(k, r, run):
			again = append(again, a.selected[at])
		case r.State != v1alpha1.HookRunSucceeded:
			failures[k] = r
		}
	}
	a.left = append(pending, again...)
	a.backOff()
	return failures
}

// isWorthAnother reports whether the hook is run again in a container in which it was tried.
func (a *attempts) isWorthAnother(k string, r v1alpha1.HookRun, run *v1alpha1.ExecutionHook) bool {
	switch r.State {
	case v1alpha1.HookRunInterrupted:
		a.interrupted[k]++
		return a.interrupted[k] < mostInterrupted
	case v1alpha1.HookRunUnknown:
		ended := run.CreationTimestamp.Time
		if r.CompletionTime != nil {
			ended = r.CompletionTime.Time
		}
		if a.unknown[k].IsZero() {
			a.unknown[k] = ended
		}
		if ended.Sub(a.unknown[k]) >= mostUnknown {
			return false
		}
		a.due, a.why = ended, r.Message
		return true
	}
	return false
}

// backOff has the next ExecutionHook wait, ever longer, unless there is a container in which the hook has not been tried.
func (a *attempts) backOff() {
	if a.due.IsZero() || slices.ContainsFunc(a.left, func(c v1alpha1.QuiescedContainer) bool { return a.unknown[key(c.Name, c.Container)].IsZero() }) {
		a.due = time.Time{}
		return
	}
	a.due = a.due.Add(a.pause)
	a.pause = min(2*a.pause, maxPause)
}
