package applicationsnapshot

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/scale"
	"waybill.dev/waybill/sync/data/snapshot/contents"
)

// outlineOf returns what is needed of the contents of an application once its definitions are stored: which containers
// hooks select, which workloads are scaled, what is held, and which claims are mounted. The rest may have 64 MiB, and applications stay quiesced for
// as long as their drivers take.
func outlineOf(found *contents.Contents) *contents.Contents {
	kept := &contents.Contents{Mounted: found.Mounted}
	for i := range found.Pods {
		kept.Pods = append(kept.Pods, podOutline(&found.Pods[i]))
	}
	for _, w := range scale.Workloads(found) {
		o := named(w.ObjectReference)
		_ = unstructured.SetNestedField(o.Object, int64(w.Replicas), "spec", "replicas") // it has no other spec
		kept.Objects = append(kept.Objects, contents.Object{Unstructured: o})
	}
	if inst := found.Installation; inst != nil {
		kept.Installation = named(v1alpha1.ObjectReference{
			Group: v1alpha1.Group, Kind: v1alpha1.ApplicationInstallationKind, Namespace: inst.GetNamespace(), Name: inst.GetName(),
		})
	}
	return kept
}

// podOutline returns the part of a Pod that hooks are selected by.
func podOutline(pod *corev1.Pod) corev1.Pod {
	kept := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Labels: pod.Labels, DeletionTimestamp: pod.DeletionTimestamp,
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	for i := range pod.Spec.Containers {
		kept.Spec.Containers = append(kept.Spec.Containers, corev1.Container{Name: pod.Spec.Containers[i].Name})
	}
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		kept.Status.ContainerStatuses = append(kept.Status.ContainerStatuses, corev1.ContainerStatus{Name: status.Name, RestartCount: status.RestartCount})
	}
	return kept
}

// named returns an object with nothing but its name.
func named(ref v1alpha1.ObjectReference) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(ref.Group + "/v1")
	o.SetKind(ref.Kind)
	o.SetNamespace(ref.Namespace)
	o.SetName(ref.Name)
	return o
}
