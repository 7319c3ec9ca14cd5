package health

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/sync/excerpt"
)

const (
	// maxWord bounds a reason or a name in what a Pod says, and maxSaid a message or an image: they
	// are written by the users who run Pods, or by the registry of the image.
	maxWord, maxSaid = 64, 200
)

// pod says why the containers of a Pod do not run, where kstatus only says that they do not.
func pod(object map[string]any) (Status, string, bool) {
	u := &unstructured.Unstructured{Object: object}
	problem := PodProblem(u)
	if problem == "" {
		return "", "", false
	}
	result, err := status.Compute(u)
	if err != nil || Status(result.Status) == Current {
		return "", "", false
	}
	return Status(result.Status), problem, true
}

// PodProblem returns why a Pod does not run, in the words of kubectl, such as `container "web":
// ImagePullBackOff: image "nginx:nope"`; empty if its status gives no reason. It has at most some
// hundred bytes on one line, and stays the same while kubelet tries again.
func PodProblem(pod *unstructured.Unstructured) string {
	if pod.GetDeletionTimestamp() != nil {
		return ""
	}
	if c, found := condition(pod.Object, "PodScheduled"); found && c.status == "False" {
		return said(cmp.Or(c.reason, "Unschedulable"), c.message)
	}
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		containers, _, _ := unstructured.NestedSlice(pod.Object, "status", list)
		for _, entry := range containers {
			fields, _ := entry.(map[string]any)
			if problem := containerProblem(fields); problem != "" {
				name, _ := fields["name"].(string)
				return fmt.Sprintf("container %q: %s", excerpt.Of(name, maxWord), problem)
			}
		}
	}
	return ""
}

// containerProblem returns why a container does not run.
func containerProblem(c map[string]any) string {
	if ready, _, _ := unstructured.NestedBool(c, "ready"); ready {
		return ""
	}
	reason, _, _ := unstructured.NestedString(c, "state", "waiting", "reason")
	switch reason {
	case "ErrImagePull", "ImagePullBackOff": // kubelet goes from one to the other
		image, _, _ := unstructured.NestedString(c, "image")
		return fmt.Sprintf("ImagePullBackOff: image %q", excerpt.Of(excerpt.Line(image), maxSaid))
	case "CrashLoopBackOff": // its message counts the seconds
		return said(reason, exit(c, "lastState"))
	case "ContainerCreating", "PodInitializing":
		return ""
	case "":
	default:
		message, _, _ := unstructured.NestedString(c, "state", "waiting", "message")
		return said(reason, message)
	}
	if now := exit(c, "state"); now != "" {
		return now
	}
	if before := exit(c, "lastState"); before != "" {
		return "restarted after " + before
	}
	return ""
}

// exit returns how a container ended, `exit code 1 (Error)`; empty if it has not, or not with an error.
func exit(c map[string]any, state string) string {
	ended, found, _ := unstructured.NestedMap(c, state, "terminated")
	code, _, _ := unstructured.NestedInt64(ended, "exitCode")
	if !found || code == 0 {
		return ""
	}
	why, _ := ended["reason"].(string)
	return fmt.Sprintf("exit code %d (%s)", code, excerpt.Of(excerpt.Line(cmp.Or(why, "Error")), maxWord))
}

// said returns a reason with its message, within bounds and on one line.
func said(reason, message string) string {
	reason = excerpt.Of(excerpt.Line(reason), maxWord)
	if message == "" {
		return reason
	}
	return reason + ": " + excerpt.Of(excerpt.Line(message), maxSaid)
}

// workloads are the kinds of Kubernetes whose objects have Pods.
var workloads = kindSet(map[string][]string{
	"":      {"ReplicationController"},
	"apps":  {"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"},
	"batch": {"Job"},
})

// PodsOf returns the selector of the Pods of a workload; nil for an object of another kind, or one
// that does not select Pods.
func PodsOf(object *unstructured.Unstructured) labels.Selector {
	kind := object.GroupVersionKind().GroupKind()
	fields, found, _ := unstructured.NestedMap(object.Object, "spec", "selector")
	if !workloads[kind] || !found || len(fields) == 0 {
		return nil
	}
	if kind == (schema.GroupKind{Kind: "ReplicationController"}) {
		fields = map[string]any{"matchLabels": fields}
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &selector); err != nil {
		return nil
	}
	if of, err := metav1.LabelSelectorAsSelector(&selector); err == nil && !of.Empty() {
		return of
	}
	return nil
}

// PodProblems returns what is wrong with the first of some Pods, by name, with which something is,
// and with how many more; empty if none of them says.
func PodProblems(pods []unstructured.Unstructured) string {
	slices.SortFunc(pods, func(a, b unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })
	text, more := "", 0
	for i := range pods {
		switch problem := PodProblem(&pods[i]); {
		case problem == "":
		case text == "":
			text = fmt.Sprintf("Pod %s: %s", excerpt.Of(pods[i].GetName(), 2*maxWord), problem)
		default:
			more++
		}
	}
	return text + excerpt.AndMore(more)
}
