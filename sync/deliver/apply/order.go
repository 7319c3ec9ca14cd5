package apply

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
)

var installationKind = schema.GroupKind{Group: v1alpha1.Group, Kind: v1alpha1.ApplicationInstallationKind}

// stages returns the items in the order of their delivery: Namespaces and CRDs, everything else, and then
// the installations that depend on others of the same delivery, each after those. So a watcher that sees
// the change of an installation has seen that of what it depends on.
func stages(items []*item) [][]*item {
	depth := depths(items)
	deepest := 0
	for _, d := range depth {
		deepest = max(deepest, d)
	}
	order := make([][]*item, 2+deepest)
	for _, it := range items {
		switch it.id.GroupVersionKind().GroupKind() {
		case crdKind, namespaceKind:
			order[0] = append(order[0], it)
		case installationKind:
			at := 1 + depth[it.name()]
			order[at] = append(order[at], it)
		default:
			order[1] = append(order[1], it)
		}
	}
	return order
}

// depths returns how long the longest way is from each installation along what it depends on. What is on a
// way already, as in a cycle, does not count: such an installation is refused later, or waits for ever.
func depths(items []*item) map[types.NamespacedName]int {
	needs := map[types.NamespacedName][]types.NamespacedName{}
	for _, it := range items {
		if it.id.GroupVersionKind().GroupKind() == installationKind {
			needs[it.name()] = append(needs[it.name()], it.dependsOn()...)
		}
	}
	depth, onWay := map[types.NamespacedName]int{}, map[types.NamespacedName]bool{}
	var of func(types.NamespacedName) int
	of = func(key types.NamespacedName) int {
		if d, known := depth[key]; known {
			return d
		}
		onWay[key] = true
		longest := 0
		for _, needed := range needs[key] {
			if _, delivered := needs[needed]; delivered && !onWay[needed] {
				longest = max(longest, 1+of(needed))
			}
		}
		delete(onWay, key)
		depth[key] = longest
		return longest
	}
	for key := range needs {
		of(key)
	}
	return depth
}

// dependsOn returns the installations that this one depends on, whatever is wrong with its spec.
func (it *item) dependsOn() []types.NamespacedName {
	listed, _, _ := unstructured.NestedSlice(it.body, "spec", "dependsOn")
	var keys []types.NamespacedName
	for _, entry := range listed {
		dependency, _ := entry.(map[string]any)
		name, _ := dependency["name"].(string)
		namespace, _ := dependency["namespace"].(string)
		keys = append(keys, types.NamespacedName{Namespace: cmp.Or(namespace, it.id.Namespace), Name: name})
	}
	return keys
}
