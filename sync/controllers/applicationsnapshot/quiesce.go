package applicationsnapshot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/scale"
	"waybill.dev/waybill/sync/data/snapshot/contents"
	"waybill.dev/waybill/sync/deliver/hold"
	"waybill.dev/waybill/sync/excerpt"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// quiesce brings the application to rest.
func (s *scope) quiesce(ctx context.Context) (v1alpha1.SnapshotPhase, error) {
	err := s.resume(ctx)
	if err != nil {
		return "", err
	}
	var done bool
	if s.obj.Status.Plan.Quiesce == v1alpha1.QuiesceScaleDown {
		done, err = s.scaleDown(ctx)
	} else {
		done, err = s.runPreHooks(ctx)
		if s.goesWithout(err) {
			done, err = true, nil
		}
	}
	if err != nil || !done {
		return "", err
	}
	s.obj.Status.CutFrom = ptr.To(metav1.Now())
	return v1alpha1.SnapshotCutting, nil
}

// runPreHooks runs one pre-hook after the other. It reports whether all have succeeded.
func (s *scope) runPreHooks(ctx context.Context) (bool, error) {
	for i, hook := range s.obj.Status.Plan.PreHooks {
		if len(s.obj.Status.Quiesced) <= i {
			if err := s.intend(ctx, hook); err != nil {
				return false, err
			}
		}
		ended, err := s.runPreHook(ctx, hook, &s.obj.Status.Quiesced[i])
		if err != nil || ended == nil {
			return false, err
		}
		if len(ended.Status.Tags) > 0 && s.obj.Status.Tags == nil {
			s.obj.Status.Tags = map[string]string{}
		}
		maps.Copy(s.obj.Status.Tags, ended.Status.Tags)
		if _, succeeded := hookDone(ended); !succeeded {
			return false, kernel.Stalled(conditions.GetReason(ended, v1alpha1.ReadyCondition), "pre-hook %q: %s", hook.Name, conditions.GetMessage(ended, v1alpha1.ReadyCondition))
		}
	}
	if !conditions.IsFalse(s.obj, v1alpha1.PreHookExecutionCompletedCondition) { // else it is taken without
		s.completed(v1alpha1.PreHookExecutionCompletedCondition, "%s ran", excerpt.Count(len(s.obj.Status.Plan.PreHooks), "pre-hook"))
	}
	return true, nil
}

// intend records which containers a pre-hook is about to run in.
func (s *scope) intend(ctx context.Context, hook v1alpha1.HookSpec) error {
	found, err := s.outline(ctx)
	if err != nil {
		return err
	}
	selected, err := targets(found.Pods, hook)
	if err != nil {
		return err
	}
	if len(selected) == 0 {
		return kernel.Stalled(v1alpha1.HookTargetInvalidReason, "pre-hook %q selects no running container of the application any more", hook.Name)
	}
	s.quiescedNow()
	s.obj.Status.Quiesced = append(s.obj.Status.Quiesced, v1alpha1.QuiescedHook{
		Name: hook.Name, ExecutionHook: s.hookName(preStage, hook.Name, 0), Containers: selected,
	})
	return s.commit(ctx)
}

// quiescedNow records since when the application is held at rest, unless that was done: what has nothing to scale is
// not, before it is known that no Pod uses its claims.
func (s *scope) quiescedNow() {
	if s.obj.Status.QuiescedFrom == nil {
		s.obj.Status.QuiescedFrom = ptr.To(metav1.NowMicro())
	}
}

// runPreHook returns the ExecutionHook of a pre-hook once it has ended; nil before.
func (s *scope) runPreHook(ctx context.Context, hook v1alpha1.HookSpec, q *v1alpha1.QuiescedHook) (*v1alpha1.ExecutionHook, error) {
	run, err := s.findHook(ctx, q.ExecutionHook)
	if err != nil {
		return nil, err
	}
	switch {
	case run == nil && q.UID != "":
		return nil, kernel.Stalled(v1alpha1.HookFailedReason, "ExecutionHook %q of pre-hook %q was deleted", q.ExecutionHook, hook.Name)
	case run == nil:
		if run, err = s.startHook(ctx, q.ExecutionHook, hook.ActionName, nil, hookPods(q.Containers)); err != nil {
			return nil, refused(v1alpha1.HookFailedReason, err)
		}
	case lacksAction(run):
		// It would run as soon as the action is there, when it is not expected any more.
		if err := s.r.Client.Delete(ctx, run, client.Preconditions{UID: &run.UID}); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("delete ExecutionHook %q: %w", run.Name, err)
		}
		return nil, kernel.Stalled(v1alpha1.HookActionNotFoundReason, "HookAction %q of pre-hook %q does not exist any more", hook.ActionName, hook.Name)
	}
	q.UID = string(run.UID)
	if done, _ := hookDone(run); !done {
		s.message = fmt.Sprintf("running pre-hook %q", hook.Name)
		return nil, nil //nolint:nilnil // as said above
	}
	return run, nil
}

// scaleDown scales the workloads of the application to zero. It reports whether no Pod uses its claims any
// more.
func (s *scope) scaleDown(ctx context.Context) (bool, error) {
	if s.obj.Status.QuiescedFrom == nil {
		found, err := s.outline(ctx)
		if err != nil {
			return false, err
		}
		workloads := scale.Workloads(found)
		if err := s.checkClaimsStay(ctx, workloads); err != nil { // it may have changed while others had their turns
			return false, err
		}
		s.obj.Status.Scaled = workloads
		s.obj.Status.Held = held(found, s.obj.Status.Scaled)
	}
	if len(s.obj.Status.Scaled) > 0 {
		s.quiescedNow()
		if err := s.commit(ctx); err != nil {
			return false, err
		}
		s.session.outline = nil // the status has it
	}
	for _, ref := range s.obj.Status.Held {
		if err := s.marks().Put(ctx, ref); err != nil {
			return false, refused(v1alpha1.NotQuiescedReason, err)
		}
	}
	for _, w := range s.obj.Status.Scaled {
		if err := scale.Down(ctx, s.r.cluster, w); err != nil {
			return false, refused(v1alpha1.NotQuiescedReason, err)
		}
	}
	using, err := s.using(ctx)
	if err != nil {
		return false, err
	}
	s.quiescedNow()
	if len(using) == 0 {
		s.completed(v1alpha1.PreHookExecutionCompletedCondition, "%s scaled to zero", excerpt.Count(len(s.obj.Status.Scaled), "workload"))
		return true, nil
	}
	limit := s.obj.GetVolumeSnapshotTimeout()
	until := s.obj.Status.QuiescedFrom.Add(limit)
	if !metav1.Now().Time.Before(until) {
		return false, kernel.Stalled(v1alpha1.NotQuiescedReason, "Pods %s still use claims of the application %s after its workloads were scaled to zero: end them, or raise spec.volumeSnapshotTimeoutSeconds",
			excerpt.Names(using, mostNames), limit)
	}
	s.pause(until)
	s.message = "waiting for Pods to end: " + excerpt.Names(using, mostNames)
	return false, s.awaitUnused()
}

// using returns the names of the Pods that use the claims. If nothing was scaled to zero, and this pass has looked up what
// belongs to the application, it has seen that already.
func (s *scope) using(ctx context.Context) ([]string, error) {
	if seen := s.session.outline; s.surveyed && seen != nil && len(s.obj.Status.Scaled) == 0 {
		mounted := func(claim string) bool { return len(seen.Mounted[claim]) > 0 }
		if !slices.ContainsFunc(s.claims(), mounted) {
			return nil, nil
		}
	}
	return scale.Using(ctx, s.r.cluster, s.obj.Namespace, s.claims())
}

// held returns what is left alone by those who deliver it while workloads are scaled to zero: these and, before
// them, what installs them, so that it knows first.
func held(found *contents.Contents, scaled []v1alpha1.ScaledWorkload) []v1alpha1.ObjectReference {
	var refs []v1alpha1.ObjectReference
	if inst := found.Installation; inst != nil && len(scaled) > 0 {
		refs = append(refs, v1alpha1.ObjectReference{
			Group: v1alpha1.Group, Kind: v1alpha1.ApplicationInstallationKind, Namespace: inst.GetNamespace(), Name: inst.GetName(),
		})
	}
	for _, w := range scaled {
		refs = append(refs, w.ObjectReference)
	}
	return refs
}

// marks are those of what the snapshot holds. What a rollback holds is left alone already.
func (s *scope) marks() hold.Marks {
	return hold.Marks{Client: s.r.cluster, Manager: v1alpha1.FieldManager, Value: s.obj.Namespace + "/" + hold.BySnapshot(s.obj.Name), Yield: true}
}

// lookAgain is when to look whether Pods have ended that are not watched yet.
const lookAgain = 3 * time.Second

// awaitUnused has the snapshot reconciled when no Pod uses its claims any more.
func (s *scope) awaitUnused() error {
	namespace, claims, watching := s.obj.Namespace, s.claims(), &s.session.watching
	err, ended := s.r.unused.Do("", kernel.KeyOf(s.obj), strings.Join(claims, ","), func(ctx context.Context) error {
		watching.Store(true)
		defer watching.Store(false)
		return scale.AwaitUnused(ctx, s.r.cluster, namespace, claims)
	})
	if ended && err == nil {
		s.pause(metav1.Now().Time) // since this pass has looked
	}
	if !watching.Load() { // others may keep all watches busy for as long as their Pods take
		s.pause(metav1.Now().Add(lookAgain))
	}
	return err
}

// resume has the snapshot keep its turn, and changes of its VolumeSnapshots noticed, also after a restart.
func (s *scope) resume(ctx context.Context) error {
	s.keepTurn()
	return s.r.watch.Await(ctx, s.obj.Status.Volumes)
}

// keepTurn lets no other snapshot quiesce the application.
func (s *scope) keepTurn() {
	application := client.ObjectKey{Namespace: s.obj.Namespace, Name: s.obj.Status.Plan.ApplicationName}
	s.r.gate.enter(application, s.obj.UID, client.ObjectKeyFromObject(s.obj))
	s.session.resting.Store(true)
}
