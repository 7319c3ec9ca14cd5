package restore

import (
	"fmt"
	"maps"
	"slices"
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
