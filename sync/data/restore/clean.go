package restore

import (
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/api/v1alpha1"
)

// storageClassAnnotation is how claims named their StorageClass before they had a field for it. It
// counts more than the field.
const storageClassAnnotation = corev1.BetaStorageClassAnnotation

// Clean returns a copy of a definition without what the API server, or a controller, has set: it can
// be created again, or applied. It keeps labels and annotations of others, see Detach.
func Clean(definition *unstructured.Unstructured) *unstructured.Unstructured {
	obj := definition.DeepCopy()
	cleanMetadata(obj)
	delete(obj.Object, "status")
	if clean := cleaners[obj.GroupVersionKind().GroupKind()]; clean != nil {
		clean(obj)
	}
	return obj
}

// cleanMetadata keeps what its author may have written.
func cleanMetadata(obj *unstructured.Unstructured) {
	metadata, _ := obj.Object["metadata"].(map[string]any)
	maps.DeleteFunc(metadata, func(field string, _ any) bool {
		return !slices.Contains([]string{"name", "namespace", "labels", "annotations"}, field)
	})
	dropAnnotations(obj, func(key string) bool { return slices.Contains(setAnnotations, key) })
}

// setAnnotations are written by kubectl, by controllers of Kubernetes, and by Waybill in snapshots.
var setAnnotations = []string{
	v1alpha1.DeliveryAnnotation,
	corev1.LastAppliedConfigAnnotation,
	"autoscaling.alpha.kubernetes.io/conditions",
	"autoscaling.alpha.kubernetes.io/current-metrics",
	"control-plane.alpha.kubernetes.io/leader",
	"deployment.kubernetes.io/desired-replicas",
	"deployment.kubernetes.io/max-replicas",
	"deployment.kubernetes.io/revision",
	"deployment.kubernetes.io/revision-history",
	"deprecated.daemonset.template.generation",
	"endpoints.kubernetes.io/last-change-trigger-time",
}

// dropAnnotations removes the annotations that drop reports true for, and the map if it was the last.
func dropAnnotations(obj *unstructured.Unstructured, drop func(key string) bool) {
	annotations := obj.GetAnnotations()
	maps.DeleteFunc(annotations, func(key, _ string) bool { return drop(key) })
	obj.SetAnnotations(annotations)
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(obj.Object, "metadata", "annotations")
	}
}

// cleaners remove what is set in objects of one kind.
var cleaners = map[schema.GroupKind]func(*unstructured.Unstructured){
	{Kind: "Service"}:                    cleanService,
	{Kind: "PersistentVolumeClaim"}:      cleanClaim,
	{Kind: "ServiceAccount"}:             func(obj *unstructured.Unstructured) { delete(obj.Object, "secrets") },
	{Kind: "Pod"}:                        func(obj *unstructured.Unstructured) { remove(obj.Object, "spec", "nodeName") },
	{Group: "batch", Kind: "Job"}:        func(obj *unstructured.Unstructured) { cleanJob(obj.Object) },
	{Group: "batch", Kind: "CronJob"}:    cleanCronJob,
	{Group: "apps", Kind: "StatefulSet"}: cleanStatefulSet,
}

// cleanService removes addresses and ports that were allocated: they belong to the Service that was
// captured, which may still exist.
func cleanService(obj *unstructured.Unstructured) {
	spec, _ := obj.Object["spec"].(map[string]any)
	if spec["clusterIP"] != corev1.ClusterIPNone {
		delete(spec, "clusterIP")
		delete(spec, "clusterIPs")
	}
	delete(spec, "healthCheckNodePort")
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		if port, ok := port.(map[string]any); ok {
			delete(port, "nodePort")
		}
	}
}

// cleanClaim removes the volume that a claim is bound to, and where its content came from.
func cleanClaim(obj *unstructured.Unstructured) {
	remove(obj.Object, "spec", "volumeName")
	remove(obj.Object, "spec", "dataSource")
	remove(obj.Object, "spec", "dataSourceRef")
	dropAnnotations(obj, func(key string) bool {
		prefix, _, _ := strings.Cut(key, "/")
		return key != storageClassAnnotation &&
			slices.Contains([]string{"pv.kubernetes.io", "volume.kubernetes.io", "volume.beta.kubernetes.io"}, prefix)
	})
}

// cleanJob removes the selector that is made for each Job, and the labels that it selects by.
func cleanJob(job map[string]any) {
	if manual, _, _ := unstructured.NestedBool(job, "spec", "manualSelector"); manual {
		return
	}
	remove(job, "spec", "selector")
	for _, path := range [][]string{{"metadata", "labels"}, {"spec", "template", "metadata", "labels"}} {
		for _, label := range []string{"controller-uid", batchv1.ControllerUidLabel, "job-name", batchv1.JobNameLabel} {
			remove(job, append(slices.Clone(path), label)...)
		}
	}
}

func cleanCronJob(obj *unstructured.Unstructured) {
	if job, ok, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", "jobTemplate"); ok {
		if job, ok := job.(map[string]any); ok {
			cleanJob(job)
		}
	}
}

// cleanStatefulSet removes from its claims' templates what is set in claims.
func cleanStatefulSet(obj *unstructured.Unstructured) {
	for _, template := range claimTemplates(obj) {
		delete(template, "status")
		remove(template, "metadata", "creationTimestamp")
	}
}

// claimTemplates returns the volumeClaimTemplates of a StatefulSet, not copied.
func claimTemplates(obj *unstructured.Unstructured) []map[string]any {
	spec, _ := obj.Object["spec"].(map[string]any)
	list, _ := spec["volumeClaimTemplates"].([]any)
	var templates []map[string]any
	for _, item := range list {
		if template, ok := item.(map[string]any); ok {
			templates = append(templates, template)
		}
	}
	return templates
}

func remove(object map[string]any, path ...string) { unstructured.RemoveNestedField(object, path...) }

// Generated returns why an object is not created again, for people: a controller of the cluster
// creates it. It is empty for all others. among are all definitions of the snapshot, as they were read.
func Generated(definition *unstructured.Unstructured, among []*unstructured.Unstructured) string {
	kind, name := definition.GroupVersionKind().GroupKind(), definition.GetName()
	secretType, _, _ := unstructured.NestedString(definition.Object, "type")
	switch {
	case kind == schema.GroupKind{Kind: "Secret"} && secretType == string(corev1.SecretTypeServiceAccountToken):
		return "a token is made for each ServiceAccount"
	case kind == schema.GroupKind{Kind: "Secret"} && secretType == "helm.sh/release.v1":
		return "Helm keeps its releases in it"
	case kind == schema.GroupKind{Kind: "ServiceAccount"} && name == "default",
		kind == schema.GroupKind{Kind: "ConfigMap"} && slices.Contains([]string{"kube-root-ca.crt", "openshift-service-ca.crt"}, name):
		return "every namespace has one"
	case kind == schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return "" // a StatefulSet that is deleted with its claims owns them
	}
	owner := metav1.GetControllerOfNoCopy(definition)
	if owner == nil || owner.Kind == v1alpha1.ApplicationKind && strings.HasPrefix(owner.APIVersion, v1alpha1.GroupVersion.Group+"/") {
		return ""
	}
	for _, other := range among {
		if other.GetUID() == owner.UID {
			return "its owner, " + owner.Kind + " " + owner.Name + ", creates it"
		}
	}
	return ""
}
