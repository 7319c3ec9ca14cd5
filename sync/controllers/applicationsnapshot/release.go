package applicationsnapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/scale"
	"waybill.dev/waybill/sync/excerpt"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// release ends the rest of the application, whatever happened before.
func (s *scope) release(ctx context.Context) (v1alpha1.SnapshotPhase, error) {
	s.keepTurn()
	if s.mayBeQuiesced() {
		if err := s.commit(ctx); err != nil {
			return "", err
		}
	}
	err := s.scaleUp(ctx)
	done, failure := s.runPostHooks(ctx)
	if err := errors.Join(err, failure); err != nil || !done {
		return "", err
	}
	if err := s.r.volumes.Unlabel(ctx, s.owner(), s.obj.Status.Volumes); err != nil {
		return "", err
	}
	s.session.resting.Store(false)
	s.session.outline = nil // of no use any more
	s.obj.Status.Plan.PostActions = nil
	if s.obj.Status.QuiescedFrom != nil {
		s.obj.Status.QuiescedFor.Duration = time.Since(s.obj.Status.QuiescedFrom.Time).Round(time.Millisecond)
	}
	for i := range s.obj.Status.Quiesced {
		s.obj.Status.Quiesced[i].Released = true
	}
	s.obj.Status.Phase = v1alpha1.SnapshotWaiting
	if s.obj.Status.Error != nil {
		s.obj.Status.Phase = v1alpha1.SnapshotFailed
	} else { // what follows has nothing to add to it
		s.session.shown = time.Now()
		s.pass.Announce(kernel.Outcome{Unknown: v1alpha1.ProgressingReason, Message: awaited(s.obj.Status.Volumes)})
	}
	s.progress()
	if err := s.pass.Write(ctx); err != nil {
		return "", err
	}
	s.leave()
	return s.obj.Status.Phase, nil
}

// mayBeQuiesced reports whether something may have to be undone.
func (s *scope) mayBeQuiesced() bool {
	grouped := slices.ContainsFunc(s.obj.Status.Volumes, func(v v1alpha1.SnapshotVolume) bool { return v.VolumeGroupSnapshot != "" })
	return grouped || len(s.obj.Status.Scaled)+len(s.obj.Status.Held)+len(s.obj.Status.Quiesced)+len(s.obj.Status.Plan.PostHooks) > 0
}

// scaleUp gives the workloads their replicas back.
func (s *scope) scaleUp(ctx context.Context) error {
	var failures error
	for i := range s.obj.Status.Scaled {
		w := &s.obj.Status.Scaled[i]
		if w.Released {
			continue
		}
		err := scale.Up(ctx, s.r.cluster, *w)
		w.Released = err == nil
		failures = errors.Join(failures, err)
	}
	if failures != nil {
		return failures
	}
	for _, ref := range s.obj.Status.Held {
		failures = errors.Join(failures, s.marks().Drop(ctx, ref))
	}
	if failures == nil {
		s.obj.Status.Held = nil
	}
	if len(s.obj.Status.Scaled) > 0 && failures == nil {
		s.completed(v1alpha1.PostHookExecutionCompletedCondition, "%s scaled up again", excerpt.Count(len(s.obj.Status.Scaled), "workload"))
	}
	return failures
}

// runPostHooks runs the post-hooks of what may be quiesced, one after the other, also if one fails. It
// reports whether all have ended.
func (s *scope) runPostHooks(ctx context.Context) (bool, error) {
	if s.obj.Status.Plan.Quiesce == v1alpha1.QuiesceScaleDown {
		return true, nil
	}
	if running, err := s.preHookRuns(ctx); err != nil || running {
		return false, err
	}
	pods, err := s.pods(ctx)
	if err != nil {
		return false, err
	}
	began, err := s.began(ctx, pods)
	if err != nil {
		return false, err
	}
	if len(began.containers) == 0 && !s.rested() {
		return true, nil // nothing was quiesced
	}
	for _, hook := range s.obj.Status.Plan.PostHooks {
		selected, err := s.releasable(pods, hook, began)
		if err != nil {
			return false, err
		}
		if done, err := s.runPostHook(ctx, hook, selected); err != nil || !done {
			return false, err
		}
	}
	if conditions.Get(s.obj, v1alpha1.PostHookExecutionCompletedCondition) == nil {
		s.completed(v1alpha1.PostHookExecutionCompletedCondition, "%s ran", excerpt.Count(len(s.obj.Status.Plan.PostHooks), "post-hook"))
	}
	return true, nil
}

// preHookRuns reports whether a pre-hook has not ended, as when the snapshot is deleted meanwhile: what it
// does after a post-hook would stay.
func (s *scope) preHookRuns(ctx context.Context) (bool, error) {
	for _, q := range s.obj.Status.Quiesced {
		run, err := s.findHook(ctx, q.ExecutionHook)
		if err != nil {
			return false, err
		}
		if run == nil || lacksAction(run) {
			continue
		}
		if done, _ := hookDone(run); !done {
			s.message = fmt.Sprintf("waiting for pre-hook %q to end", q.Name)
			return true, nil
		}
	}
	return false, nil
}

// pods returns the Pods of the application. If they cannot be found out any more, it returns those that
// pre-hooks ran in: they are released all the same.
func (s *scope) pods(ctx context.Context) ([]corev1.Pod, error) {
	found, err := s.outline(ctx)
	if err == nil {
		return found.Pods, nil
	}
	ctrl.LoggerFrom(ctx).Info("release only the Pods that pre-hooks ran in", "error", err.Error())
	var pods []corev1.Pod
	known := map[string]bool{}
	for _, q := range s.obj.Status.Quiesced {
		for _, c := range q.Containers {
			if known[c.Name] {
				continue
			}
			known[c.Name] = true
			pod := &corev1.Pod{}
			err := s.r.cluster.Get(ctx, types.NamespacedName{Namespace: s.obj.Namespace, Name: c.Name}, pod)
			switch {
			case err == nil:
				pods = append(pods, *pod)
			case !apierrors.IsNotFound(err):
				return nil, fmt.Errorf("get Pod %q: %w", c.Name, err)
			}
		}
	}
	return pods, nil
}

// rested reports whether all pre-hooks have succeeded.
func (s *scope) rested() bool {
	return conditions.IsTrue(s.obj, v1alpha1.PreHookExecutionCompletedCondition)
}

// beginnings says in which containers pre-hooks are known to have begun, or to have been about to.
type beginnings struct {
	containers map[string]bool                       // that a pre-hook has begun in, by key
	intended   map[string]v1alpha1.QuiescedContainer // that a pre-hook selects, by key
}

func key(pod, container string) string { return pod + "/" + container }

func (s *scope) began(ctx context.Context, pods []corev1.Pod) (beginnings, error) {
	b := beginnings{containers: map[string]bool{}, intended: map[string]v1alpha1.QuiescedContainer{}}
	for _, hook := range s.obj.Status.Plan.PreHooks[len(s.obj.Status.Quiesced):] {
		selected, err := targets(pods, hook)
		if err != nil && !kernel.IsStalled(err) {
			return b, err
		}
		for _, c := range selected {
			b.intended[key(c.Name, c.Container)] = c
		}
	}
	for _, q := range s.obj.Status.Quiesced {
		run, err := s.findHook(ctx, q.ExecutionHook)
		if err != nil {
			return b, err
		}
		for i, c := range q.Containers {
			b.intended[key(c.Name, c.Container)] = c
			switch {
			case run != nil && i < len(run.Status.Runs) && run.Status.Runs[i].State != v1alpha1.HookRunPending,
				run == nil && q.UID != "": // it was deleted
				b.containers[key(c.Name, c.Container)] = true
			}
		}
	}
	return b, nil
}

// releasable returns the containers that a post-hook has to run in. If all pre-hooks ran, that is all that
// it selects. Else it leaves out those whose own pre-hook did not begin. A Pod that has come in the place of
// another was never quiesced.
func (s *scope) releasable(pods []corev1.Pod, hook v1alpha1.HookSpec, began beginnings) ([]v1alpha1.QuiescedContainer, error) {
	selected, err := targets(pods, hook)
	if err != nil && !kernel.IsStalled(err) {
		return nil, err
	}
	return slices.DeleteFunc(selected, func(c v1alpha1.QuiescedContainer) bool {
		before, intended := began.intended[key(c.Name, c.Container)]
		switch {
		case intended && before.UID != c.UID:
			return true
		case intended && !s.rested():
			return !began.containers[key(c.Name, c.Container)]
		}
		return false
	}), nil
}

// runPostHook runs a post-hook, and reports whether it has ended in all of its containers. Its
// ExecutionHook ends with the first container that it fails in, or when waybill-sync ends: another one goes
// on in the others.
func (s *scope) runPostHook(ctx context.Context, hook v1alpha1.HookSpec, selected []v1alpha1.QuiescedContainer) (bool, error) {
	tried := newAttempts(selected)
	for attempt := 0; len(tried.left) > 0; attempt++ {
		name := s.hookName(postStage, hook.Name, attempt)
		if waits, err := s.backsOff(ctx, name, hook, tried); waits || err != nil {
			return false, err
		}
		run, err := s.startPostHook(ctx, name, hook, tried.left)
		if err != nil {
			return false, err
		}
		if run == nil {
			break // the namespace is being deleted, or the snapshot, and it cannot be run
		}
		done, succeeded := hookDone(run)
		if !done {
			s.message = fmt.Sprintf("running post-hook %q", hook.Name)
			if lacksAction(run) {
				s.message = fmt.Sprintf("create HookAction %q again: the application is quiesced until post-hook %q has run", hook.ActionName, hook.Name)
			}
			return false, nil
		}
		if failed := tried.add(run); !succeeded { // else its action lets them pass
			maps.Copy(tried.failures, failed)
		}
	}
	return true, s.judge(ctx, hook, selected, tried.failures)
}

// backsOff reports whether a post-hook is to be run again later.
func (s *scope) backsOff(ctx context.Context, name string, hook v1alpha1.HookSpec, tried *attempts) (bool, error) {
	if !time.Now().Before(tried.due) {
		return false, nil
	}
	run, err := s.findHook(ctx, name)
	if run != nil || err != nil {
		return false, err
	}
	s.pause(tried.due)
	s.message = fmt.Sprintf("running post-hook %q again, because it is not known whether it ran: %s", hook.Name, tried.why)
	return true, nil
}

// startPostHook returns an ExecutionHook of a post-hook; nil if there will be none any more.
func (s *scope) startPostHook(ctx context.Context, name string, hook v1alpha1.HookSpec, left []v1alpha1.QuiescedContainer) (*v1alpha1.ExecutionHook, error) {
	run, err := s.findHook(ctx, name)
	if err == nil && run == nil {
		run, err = s.startHook(ctx, name, hook.ActionName, s.planned(hook.ActionName), hookPods(left))
	}
	deleting := !s.obj.DeletionTimestamp.IsZero()
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil, nil //nolint:nilnil // as said above
	case kernel.IsStalled(err):
		s.record(err)
		return nil, nil //nolint:nilnil // as said above
	case err == nil && deleting && lacksAction(run):
		return nil, nil //nolint:nilnil // as said above
	}
	return run, err
}

// judge fails the snapshot if a post-hook failed in a container that is still there.
func (s *scope) judge(ctx context.Context, hook v1alpha1.HookSpec, selected []v1alpha1.QuiescedContainer, failures map[string]v1alpha1.HookRun) error {
	for _, c := range selected {
		failure, failed := failures[key(c.Name, c.Container)]
		if !failed {
			continue
		}
		lost, err := s.lost(ctx, c)
		if err != nil {
			return err
		}
		if lost != "" {
			continue // with it, what it held
		}
		err = kernel.Stalled(v1alpha1.PostHookFailedReason, "post-hook %q failed in Pod %q: %s; the application may still be quiesced: look at it, and run HookAction %q again by an ExecutionHook",
			hook.Name, c.Name, failure.Message, hook.ActionName)
		conditions.MarkFalse(s.obj, v1alpha1.PostHookExecutionCompletedCondition, v1alpha1.PostHookFailedReason, "%s", err.Error())
		if s.rested() || s.obj.Spec.HookPolicy != v1alpha1.HookPolicyTry {
			s.record(err)
		}
		return nil
	}
	return nil
}
