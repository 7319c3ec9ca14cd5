package applicationsnapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	kernel "waybill.dev/waybill/sync/reconcile"
)

// The stages that hooks of a class belong to.
const (
	preStage  = "pre"
	postStage = "post"
)

// hookName returns the name of the ExecutionHook of a hook: that of the snapshot and of the hook, and a
// hash, because both may contain dashes, and one hook may have to run again elsewhere.
func (s *scope) hookName(stage, hook string, attempt int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%s/%d", s.obj.UID, stage, hook, attempt))
	prefix := s.obj.Name[:min(len(s.obj.Name), 180)]
	return fmt.Sprintf("%s-%s-%s", strings.TrimRight(prefix, "-."), hook, hex.EncodeToString(sum[:4]))
}

// startHook creates an ExecutionHook, unless it exists. It runs what spec says or, without one, what its HookAction says
// then.
func (s *scope) startHook(ctx context.Context, name, action string, spec *v1alpha1.HookActionSpec, pods []v1alpha1.HookPod) (*v1alpha1.ExecutionHook, error) {
	hook := &v1alpha1.ExecutionHook{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.obj.Namespace, Name: name,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.obj, v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationSnapshotKind))},
		},
		Spec: v1alpha1.ExecutionHookSpec{ActionName: action, Action: spec, Pods: pods},
	}
	err := s.r.Client.Create(ctx, hook)
	if apierrors.IsAlreadyExists(err) {
		err = s.r.Direct.Get(ctx, client.ObjectKeyFromObject(hook), hook)
		if err == nil && !metav1.IsControlledBy(hook, s.obj) {
			return nil, kernel.Stalled(v1alpha1.HookFailedReason, "ExecutionHook %q exists, and does not belong to the snapshot", name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create ExecutionHook %q: %w", name, err)
	}
	return hook, nil
}

// findHook returns an ExecutionHook of the snapshot; nil if there is none.
func (s *scope) findHook(ctx context.Context, name string) (*v1alpha1.ExecutionHook, error) {
	hook := &v1alpha1.ExecutionHook{}
	err := s.r.read(ctx, types.NamespacedName{Namespace: s.obj.Namespace, Name: name}, hook)
	switch {
	case apierrors.IsNotFound(err), err == nil && !metav1.IsControlledBy(hook, s.obj):
		return nil, nil //nolint:nilnil // as said above
	case err != nil:
		return nil, fmt.Errorf("get ExecutionHook %q: %w", name, err)
	}
	return hook, nil
}

// hookDone reports whether an ExecutionHook has ended, and as what.
func hookDone(h *v1alpha1.ExecutionHook) (done, succeeded bool) {
	switch conditions.GetReason(h, v1alpha1.ReadyCondition) {
	case v1alpha1.SucceededReason:
		return true, true
	case v1alpha1.HookFailedReason, v1alpha1.HookInterruptedReason:
		return true, false
	}
	return false, false
}

// lacksAction reports whether an ExecutionHook waits for its HookAction.
func lacksAction(h *v1alpha1.ExecutionHook) bool {
	return conditions.GetReason(h, v1alpha1.ReadyCondition) == v1alpha1.HookActionNotFoundReason
}

// lost says what happened to a container since a hook was to run in it: its Pod is gone, or it has
// restarted. Empty if neither did.
func (s *scope) lost(ctx context.Context, c v1alpha1.QuiescedContainer) (string, error) {
	pod := &corev1.Pod{}
	err := s.r.cluster.Get(ctx, types.NamespacedName{Namespace: s.obj.Namespace, Name: c.Name}, pod)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(pod.UID) != c.UID:
		return fmt.Sprintf("Pod %q is gone", c.Name), nil
	case err != nil:
		return "", fmt.Errorf("get Pod %q: %w", c.Name, err)
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return fmt.Sprintf("Pod %q has ended", c.Name), nil
	case restarts(pod, c.Container) != c.Restarts:
		return fmt.Sprintf("container %q of Pod %q has restarted", c.Container, c.Name), nil
	}
	return "", nil
}

func hookPods(containers []v1alpha1.QuiescedContainer) []v1alpha1.HookPod {
	var found []v1alpha1.HookPod
	for _, c := range containers {
		found = append(found, c.HookPod)
	}
	return found
}
