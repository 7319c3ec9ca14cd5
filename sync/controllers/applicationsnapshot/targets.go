package applicationsnapshot

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/fluxcd/pkg/runtime/conditions"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/scale"
	"waybill.dev/waybill/sync/data/snapshot/contents"
	"waybill.dev/waybill/sync/excerpt"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// mostPods is how many Pods an ExecutionHook names, and mostNames how many names a message lists.
const (
	mostPods  = 500
	mostNames = 5
)

// targets returns the containers that a hook runs in: of running Pods that its filter selects and that
// have its container.
func targets(pods []corev1.Pod, hook v1alpha1.HookSpec) ([]v1alpha1.QuiescedContainer, error) {
	filter := labels.Everything()
	if hook.PodFilter != nil {
		var err error
		if filter, err = metav1.LabelSelectorAsSelector(hook.PodFilter); err != nil {
			return nil, kernel.Stalled(v1alpha1.HookTargetInvalidReason, "podFilter of hook %q: %w", hook.Name, err)
		}
	}
	var found []v1alpha1.QuiescedContainer
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase != corev1.PodRunning || !pod.DeletionTimestamp.IsZero() || !filter.Matches(labels.Set(pod.Labels)) {
			continue
		}
		name := hook.Container
		if name == "" {
			name = pod.Spec.Containers[0].Name
		}
		if !slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == name }) {
			continue
		}
		found = append(found, v1alpha1.QuiescedContainer{
			HookPod: v1alpha1.HookPod{Name: pod.Name, UID: string(pod.UID), Container: name}, Restarts: restarts(pod, name),
		})
	}
	if len(found) > mostPods {
		return nil, kernel.Stalled(v1alpha1.HookTargetInvalidReason, "hook %q selects %d Pods, but at most %d are supported: narrow its podFilter", hook.Name, len(found), mostPods)
	}
	return found, nil
}

func restarts(pod *corev1.Pod, container string) int32 {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == container {
			return status.RestartCount
		}
	}
	return 0
}

// checkQuiesce fails if the application cannot be brought to rest.
func (s *scope) checkQuiesce(ctx context.Context, plan *v1alpha1.SnapshotPlan, found *contents.Contents, claims []contents.Claim) error {
	if plan.Quiesce == v1alpha1.QuiesceScaleDown {
		return s.checkScalable(ctx, found, claims)
	}
	for what, hooks := range map[string][]v1alpha1.HookSpec{"pre-hook": plan.PreHooks, postHook: plan.PostHooks} {
		actions, err := s.checkHooks(ctx, what, hooks, found.Pods)
		if what == postHook && err == nil {
			plan.PostActions, err = planned(actions)
		}
		if s.goesWithout(err) {
			plan.PreHooks, plan.PostHooks, plan.PostActions = nil, nil, nil
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// goesWithout reports whether the snapshot is taken although its hooks cannot run, or have failed, and says so.
func (s *scope) goesWithout(err error) bool {
	if s.obj.Spec.HookPolicy != v1alpha1.HookPolicyTry || !kernel.IsStalled(err) {
		return false
	}
	conditions.MarkFalse(s.obj, v1alpha1.PreHookExecutionCompletedCondition, kernel.ReasonOf(err), "taken without hooks: %s", err.Error())
	return true
}

const postHook = "post-hook"

// checkHooks fails if a hook has no action, selects nothing, or selects a container that another one
// selects, too. Else it returns their actions.
func (s *scope) checkHooks(ctx context.Context, what string, hooks []v1alpha1.HookSpec, pods []corev1.Pod) (map[string]*v1alpha1.HookAction, error) {
	takenBy, actions := map[string]string{}, map[string]*v1alpha1.HookAction{}
	for _, hook := range hooks {
		action := &v1alpha1.HookAction{}
		actions[hook.ActionName] = action
		err := s.r.read(ctx, types.NamespacedName{Namespace: s.obj.Namespace, Name: hook.ActionName}, action)
		if apierrors.IsNotFound(err) {
			return nil, kernel.Stalled(v1alpha1.HookActionNotFoundReason, "HookAction %q of %s %q does not exist in namespace %q", hook.ActionName, what, hook.Name, s.obj.Namespace)
		}
		if err != nil {
			return nil, fmt.Errorf("get HookAction %q: %w", hook.ActionName, err)
		}
		selected, err := targets(pods, hook)
		if err != nil {
			return nil, err
		}
		if len(selected) == 0 {
			return nil, kernel.Stalled(v1alpha1.HookTargetInvalidReason, "%s %q of ApplicationSnapshotClass %q selects no running container of the application", what, hook.Name, s.obj.Spec.SnapshotClassName)
		}
		for _, c := range selected {
			key := c.Name + "/" + c.Container
			if other := takenBy[key]; other != "" {
				return nil, kernel.Stalled(v1alpha1.HookTargetInvalidReason, "%ss %q and %q of ApplicationSnapshotClass %q both select container %q of Pod %q: a container has at most one",
					what, other, hook.Name, s.obj.Spec.SnapshotClassName, c.Container, c.Name)
			}
			takenBy[key] = hook.Name
		}
	}
	return actions, nil
}

// checkStarted fails if a Pod of the application that a pre-hook would have to quiesce has begun to use a claim that is
// snapshotted since the hook selected its Pods. Without hooks, nothing is promised of any.
func (s *scope) checkStarted(ctx context.Context) error {
	if len(s.obj.Status.Quiesced) == 0 || !s.rested() {
		return nil
	}
	all := &corev1.PodList{}
	if err := s.r.cluster.List(ctx, all, client.InNamespace(s.obj.Namespace)); err != nil {
		return fmt.Errorf("list Pods: %w", err)
	}
	claims := s.claims()
	pods := slices.DeleteFunc(all.Items, func(p corev1.Pod) bool { return !scale.Uses(&p, claims) })
	started := map[string]string{} // the hook, by Pod
	for i, hook := range s.obj.Status.Plan.PreHooks {
		selected, err := targets(pods, hook)
		if err != nil {
			return err
		}
		for _, c := range selected {
			if !slices.ContainsFunc(s.obj.Status.Quiesced[i].Containers, func(q v1alpha1.QuiescedContainer) bool { return q.HookPod == c.HookPod }) {
				started[c.Name] = hook.Name
			}
		}
	}
	if len(started) == 0 {
		return nil
	}
	found, err := s.r.Finder.Find(ctx, s.obj.Namespace, s.obj.Status.Plan.ApplicationName)
	if err != nil {
		return unfit(err)
	}
	for i := range found.Pods {
		name := found.Pods[i].Name
		if hook := started[name]; hook != "" {
			return kernel.Stalled(v1alpha1.NotQuiescedReason, "Pod %q started after pre-hook %q had selected its Pods, and uses claims of the application: it was not quiesced when its volumes were cut; create another ApplicationSnapshot when no Pod starts", name, hook)
		}
	}
	return nil
}

// checkScalable fails if a Pod uses a claim that scaling the workloads of the application to zero does
// not end.
func (s *scope) checkScalable(ctx context.Context, found *contents.Contents, claims []contents.Claim) error {
	using := map[string]bool{}
	for _, c := range claims {
		for _, pod := range found.Mounted[c.GetName()] {
			using[pod] = true
		}
	}
	var others []string
	for _, name := range slices.Sorted(maps.Keys(using)) {
		ends, err := s.endsWith(ctx, name, scale.Workloads(found))
		if err != nil {
			return err
		}
		if !ends {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		return kernel.Stalled(v1alpha1.NotQuiescedReason, "Pods %s use claims of the application, but belong to none of its Deployments and StatefulSets, which is what can be scaled to zero: delete them first, or use hooks",
			excerpt.Names(others, mostNames))
	}
	return s.checkClaimsStay(ctx, scale.Workloads(found))
}

// checkClaimsStay fails if a StatefulSet deletes its claims when it is scaled to zero: their volumes would go with them,
// before they are cut. Also those that are not snapshotted would.
func (s *scope) checkClaimsStay(ctx context.Context, workloads []v1alpha1.ScaledWorkload) error {
	for _, w := range workloads {
		if w.Kind != "StatefulSet" {
			continue
		}
		set := &appsv1.StatefulSet{}
		err := s.r.cluster.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: w.Name}, set)
		switch policy := set.Spec.PersistentVolumeClaimRetentionPolicy; {
		case apierrors.IsNotFound(err):
		case err != nil:
			return fmt.Errorf("get StatefulSet %q: %w", w.Name, err)
		case policy != nil && policy.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType && len(set.Spec.VolumeClaimTemplates) > 0:
			return kernel.Stalled(v1alpha1.NotQuiescedReason, "StatefulSet %q cannot be scaled to zero, because its claims are deleted with its Pods: set spec.persistentVolumeClaimRetentionPolicy.whenScaled to Retain, or use hooks", w.Name)
		}
	}
	return nil
}

// endsWith reports whether a Pod belongs to one of the workloads.
func (s *scope) endsWith(ctx context.Context, name string, workloads []v1alpha1.ScaledWorkload) (bool, error) {
	pod := &corev1.Pod{}
	if err := s.r.cluster.Get(ctx, types.NamespacedName{Namespace: s.obj.Namespace, Name: name}, pod); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	owner := metav1.GetControllerOf(pod)
	if owner != nil && owner.Kind == "ReplicaSet" {
		set := &appsv1.ReplicaSet{}
		if err := s.r.cluster.Get(ctx, types.NamespacedName{Namespace: s.obj.Namespace, Name: owner.Name}, set); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		owner = metav1.GetControllerOf(set)
	}
	return owner != nil && slices.ContainsFunc(workloads, func(w v1alpha1.ScaledWorkload) bool {
		return w.Kind == owner.Kind && w.Name == owner.Name
	}), nil
}
