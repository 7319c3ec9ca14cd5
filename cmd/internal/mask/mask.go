// Package mask hides the data of Secrets, and of templates of Secrets, before it is shown.
package mask

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Hidden is shown in place of a secret value.
const Hidden = "***"

// Replacements of a secret value; if it differs between two states, before and after.
const (
	masked       = Hidden
	maskedBefore = "*** (before)"
	maskedAfter  = "*** (after)"
)

// lastApplied is where `kubectl apply` keeps a copy of the whole object, including secrets.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Secret returns a copy of an object with the data of Secrets hidden: its own, if it is one, and
// that of the Secrets that it templates, at any depth. An object without secrets is returned
// unchanged.
func Secret(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil || !tells(object.Object) {
		return object
	}
	hidden := object.DeepCopy()
	walk(hidden.Object, "", func(_ string, inner map[string]any) {
		if isSecret(inner) {
			hideData(inner)
		}
		if annotations := annotationsOf(inner); tellsLastApplied(inner) {
			annotations[lastApplied] = masked
		}
	})
	return hidden
}

// Pair returns copies of two states of an object with the data of Secrets hidden, like Secret, but
// so that values that differ still do. Either may be nil.
func Pair(before, after *unstructured.Unstructured) (*unstructured.Unstructured, *unstructured.Unstructured) {
	hiddenBefore, hiddenAfter := Secret(before), Secret(after)
	if before == nil || after == nil {
		return hiddenBefore, hiddenAfter
	}
	was, is := secretsOf(before), secretsOf(after)
	wasHidden, isHidden := secretsOf(hiddenBefore), secretsOf(hiddenAfter)
	for key, one := range was {
		other, both := is[key]
		if !both {
			continue
		}
		for _, field := range dataFields {
			for name, value := range dataOf(one, field) {
				if changed, both := dataOf(other, field)[name]; both && !same(value, changed) {
					dataOf(wasHidden[key], field)[name] = maskedBefore
					dataOf(isHidden[key], field)[name] = maskedAfter
				}
			}
		}
	}
	return hiddenBefore, hiddenAfter
}

// dataFields are the secret fields of a Secret.
var dataFields = []string{"data", "stringData"}

// walk visits every map in a value, each with its path. List entries have no index in the path,
// because they move.
func walk(value any, path string, visit func(path string, inner map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		visit(path, value)
		for _, key := range slices.Sorted(maps.Keys(value)) {
			walk(value[key], path+"."+key, visit)
		}
	case []any:
		for _, entry := range value {
			walk(entry, path+"[]", visit)
		}
	}
}

// tells reports whether there is something to hide in a value.
func tells(value any) bool {
	found := false
	walk(value, "", func(_ string, inner map[string]any) { found = found || isSecret(inner) || tellsLastApplied(inner) })
	return found
}

// tellsLastApplied reports whether an object has a copy of an earlier state of itself with
// something to hide. A copy that cannot be parsed counts as such.
func tellsLastApplied(inner map[string]any) bool {
	text, present := annotationsOf(inner)[lastApplied]
	if !present {
		return false
	}
	encoded, _ := text.(string)
	var earlier any
	return isSecret(inner) || json.Unmarshal([]byte(encoded), &earlier) != nil || tells(earlier)
}

// secretsOf returns the Secrets in an object by path, namespace and name; those that are equal in
// that are distinguished by their order.
func secretsOf(object *unstructured.Unstructured) map[string]map[string]any {
	found := map[string]map[string]any{}
	walk(object.Object, "", func(path string, inner map[string]any) {
		if !isSecret(inner) {
			return
		}
		namespace, _, _ := unstructured.NestedString(inner, "metadata", "namespace")
		name, _, _ := unstructured.NestedString(inner, "metadata", "name")
		for n := 0; ; n++ {
			key := fmt.Sprintf("%s %s/%s %d", path, namespace, name, n)
			if found[key] == nil {
				found[key] = inner
				return
			}
		}
	})
	return found
}

func isSecret(inner map[string]any) bool {
	version, _ := inner["apiVersion"].(string)
	return inner["kind"] == "Secret" && !strings.Contains(version, "/")
}

func hideData(secret map[string]any) {
	for _, field := range dataFields {
		data := dataOf(secret, field)
		if data == nil && secret[field] != nil {
			secret[field] = masked // malformed, but may be secret nevertheless
		}
		for key := range data {
			data[key] = masked
		}
	}
}

func dataOf(secret map[string]any, field string) map[string]any {
	data, _ := secret[field].(map[string]any) // nil if it is malformed
	return data
}

func annotationsOf(inner map[string]any) map[string]any {
	metadata, _ := inner["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations
}

func same(a, b any) bool {
	left, errLeft := json.Marshal(a)
	right, errRight := json.Marshal(b)
	return errLeft == nil && errRight == nil && string(left) == string(right)
}
