package restore

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/excerpt"
)

// Unused returns those of the claims, all of one namespace, that none of the objects uses: as a claim, in a
// Pod or a template of Pods, or by a StatefulSet's template of claims.
func Unused(claims []string, objects []*unstructured.Unstructured) []string {
	used := map[string]bool{}
	var series []string // of templates of claims, without the ordinal
	for _, o := range objects {
		switch kind := o.GroupVersionKind().GroupKind(); {
		case kind == claimKind:
			used[o.GetName()] = true
		case kind == statefulSetKind:
			for _, template := range claimTemplates(o) {
				name, _, _ := unstructured.NestedString(template, "metadata", "name")
				series = append(series, name+"-"+o.GetName()+"-")
			}
			fallthrough
		case slices.Contains(workloads, kind):
			maps.Copy(used, mounted(o))
		}
	}
	return slices.DeleteFunc(slices.Clone(claims), func(claim string) bool {
		return used[claim] || slices.ContainsFunc(series, func(prefix string) bool {
			ordinal, ok := strings.CutPrefix(claim, prefix)
			return ok && isOrdinal(ordinal)
		})
	})
}

// Idle returns those of the claims, all of one namespace, that no Pod is going to use for now: none of the objects uses
// them, or only a workload that has no replicas, or not as many, or a CronJob.
func Idle(claims []string, objects []*unstructured.Unstructured) []string {
	running := slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
		return replicas(o) == 0 || o.GroupVersionKind().GroupKind() == cronJobKind
	})
	unused := Unused(claims, running)
	return slices.DeleteFunc(slices.Clone(claims), func(claim string) bool {
		return !slices.Contains(unused, claim) && !slices.ContainsFunc(running, func(o *unstructured.Unstructured) bool { return isBeyond(claim, o) })
	})
}

// isBeyond reports whether a claim is one of a StatefulSet that has fewer replicas.
func isBeyond(claim string, o *unstructured.Unstructured) bool {
	if o.GroupVersionKind().GroupKind() != statefulSetKind {
		return false
	}
	start := number(o, 0, "spec", "ordinals", "start")
	for _, template := range claimTemplates(o) {
		name, _, _ := unstructured.NestedString(template, "metadata", "name")
		ordinal, ok := strings.CutPrefix(claim, name+"-"+o.GetName()+"-")
		if n, err := strconv.ParseInt(ordinal, 10, 32); ok && isOrdinal(ordinal) && err == nil && (n < start || n >= start+replicas(o)) {
			return true
		}
	}
	return false
}

// replicas returns how many Pods a workload is to have, as far as it says.
func replicas(o *unstructured.Unstructured) int64 { return number(o, 1, "spec", "replicas") }

// number returns the number in a field, which rules may have written.
func number(o *unstructured.Unstructured, otherwise int64, path ...string) int64 {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	switch n := value.(type) {
	case int64:
		return n
	case int:
		return int64(n)
	case float64:
		return int64(n)
	}
	return otherwise
}

// DescribeUnused says what to do about claims that nothing uses of what is to be installed.
func DescribeUnused(claims []string) string {
	return fmt.Sprintf("it would not use %s, restored for it, but empty ones beside: restore it under the name that it had, in another namespace, or have rules of type Name "+
		"give them the names that the source looks for; to install it all the same, remove annotation %s and set %s",
		excerpt.Texts(prefixed("PersistentVolumeClaim ", claims), ", ", maxNamed), v1alpha1.RestoredClaimsAnnotation, v1alpha1.ReconcileAtAnnotation)
}

// maxNamed is how many claims a message names.
const maxNamed = 5

func prefixed(prefix string, names []string) []string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = prefix + name
	}
	return texts
}

var cronJobKind = schema.GroupKind{Group: "batch", Kind: "CronJob"}

// workloads are the kinds that have volumes of their own, or of their Pods.
var workloads = []schema.GroupKind{
	{Kind: "Pod"}, {Kind: "ReplicationController"},
	{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "DaemonSet"}, {Group: "apps", Kind: "ReplicaSet"}, {Group: "apps", Kind: "StatefulSet"},
	{Group: "batch", Kind: "Job"}, {Group: "batch", Kind: "CronJob"},
}

// mounted returns the claims that a workload names as volumes.
func mounted(o *unstructured.Unstructured) map[string]bool {
	found := map[string]bool{}
	_ = each(o.Object, func(object map[string]any) error { // visit returns no error
		list, _ := object["volumes"].([]any)
		for _, item := range list {
			volume, _ := item.(map[string]any)
			claim, _ := volume["persistentVolumeClaim"].(map[string]any)
			if name, _ := claim["claimName"].(string); name != "" {
				found[name] = true
			}
		}
		return nil
	})
	return found
}
