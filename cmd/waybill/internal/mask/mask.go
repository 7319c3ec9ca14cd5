// Package mask hides the data of Secrets before it is shown.
package mask

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What stands in the place of a secret value; of one that two sides have differently, before
// and after.
const (
	Hidden = "***"
	Before = "*** (before)"
	After  = "*** (after)"
)

// lastApplied is where `kubectl apply` keeps all of an object, secrets included.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Secret returns a copy of a Secret with its data hidden; other objects as they are.
func Secret(object *unstructured.Unstructured) *unstructured.Unstructured {
	if !isSecret(object) {
		return object
	}
	hidden := object.DeepCopy()
	for _, field := range []string{"data", "stringData"} {
		if value, odd := hidden.Object[field]; odd && dataOf(hidden, field) == nil && value != nil {
			hidden.Object[field] = Hidden // nonsense that may be secret all the same
		}
		for key := range dataOf(hidden, field) {
			setData(hidden, field, key, Hidden)
		}
	}
	hideLastApplied(hidden)
	return hidden
}

// Pair returns copies of two states of a Secret with their data hidden, in which values that
// differ still do. Either may be nil.
func Pair(before, after *unstructured.Unstructured) (*unstructured.Unstructured, *unstructured.Unstructured) {
	if !isSecret(before) && !isSecret(after) {
		return before, after
	}
	hiddenBefore, hiddenAfter := before, after
	if before != nil {
		hiddenBefore = Secret(before)
	}
	if after != nil {
		hiddenAfter = Secret(after)
	}
	if before == nil || after == nil {
		return hiddenBefore, hiddenAfter
	}
	for _, field := range []string{"data", "stringData"} {
		was, is := dataOf(before, field), dataOf(after, field)
		for key, value := range was {
			if other, both := is[key]; both && !same(value, other) {
				setData(hiddenBefore, field, key, Before)
				setData(hiddenAfter, field, key, After)
			}
		}
	}
	return hiddenBefore, hiddenAfter
}

func isSecret(object *unstructured.Unstructured) bool {
	return object != nil && object.GetKind() == "Secret" && object.GroupVersionKind().Group == ""
}

func dataOf(object *unstructured.Unstructured, field string) map[string]any {
	data, _ := object.Object[field].(map[string]any) // nil where a manifest has nonsense there
	return data
}

func setData(object *unstructured.Unstructured, field, key, value string) {
	dataOf(object, field)[key] = value
}

func hideLastApplied(object *unstructured.Unstructured) {
	annotations := object.GetAnnotations()
	if _, ok := annotations[lastApplied]; ok {
		annotations[lastApplied] = Hidden
		object.SetAnnotations(annotations)
	}
}

func same(a, b any) bool {
	left, errLeft := json.Marshal(a)
	right, errRight := json.Marshal(b)
	return errLeft == nil && errRight == nil && string(left) == string(right)
}
