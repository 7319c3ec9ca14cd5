// Package mask hides the data of Secrets, and of templates of Secrets, before it is shown.
package mask

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Replacements of a secret value.
const (
	// Hidden is shown in place of a secret value, and in place of one that differs between two states, Before and After.
	Hidden = "***"
	Before = "*** (before)"
	After  = "*** (after)"
)

// LastApplied is the annotation in which `kubectl apply` keeps a copy of the whole object, including secrets.
const LastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Secret returns a copy of an object with the data of Secrets hidden: its own, if it is one, and
// that of the Secrets that it templates, at any depth. An object without secrets is returned
// unchanged.
func Secret(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil || !tells(object.Object) {
		return object
	}
	hidden := object.DeepCopy()
	walk(hidden.Object, 0, func(_ path, inner map[string]any) {
		if isSecret(inner) {
			hideData(inner)
		}
		if annotations := annotationsOf(inner); tellsLastApplied(inner) {
			annotations[LastApplied] = Hidden
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
	was, is := Find(before, isSecret), Find(after, isSecret)
	wasHidden, isHidden := Find(hiddenBefore, isSecret), Find(hiddenAfter, isSecret)
	for key, one := range was {
		other, both := is[key]
		if !both {
			continue
		}
		for _, field := range dataFields {
			for name, value := range dataOf(one, field) {
				if changed, both := dataOf(other, field)[name]; both && !same(value, changed) {
					dataOf(wasHidden[key], field)[name] = Before
					dataOf(isHidden[key], field)[name] = After
				}
			}
		}
	}
	return hiddenBefore, hiddenAfter
}

// dataFields are the secret fields of a Secret.
var dataFields = []string{"data", "stringData"}

// path stands for where a value is in an object. It has a length that does not depend on the names there: many values may be
// below a long one.
type path uint64

var pathSeed = maphash.MakeSeed()

// below returns the path of what has a name, or any index, in what is at a path.
func (p path) below(name string) path {
	return path(maphash.Comparable(pathSeed, struct {
		above path
		name  string
	}{p, name}))
}

// walk visits every map in a value, each with its path. List entries have no index in the path,
// because they move.
func walk(value any, at path, visit func(at path, inner map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		visit(at, value)
		for _, key := range slices.Sorted(maps.Keys(value)) {
			walk(value[key], at.below(key), visit)
		}
	case []any:
		below := at.below("[]")
		for _, entry := range value {
			walk(entry, below, visit)
		}
	}
}

// tells reports whether there is something to hide in a value.
func tells(value any) bool {
	found := false
	walk(value, 0, func(_ path, inner map[string]any) { found = found || isSecret(inner) || tellsLastApplied(inner) })
	return found
}

// tellsLastApplied reports whether an object has a copy of an earlier state of itself with
// something to hide. A copy that cannot be parsed counts as such.
func tellsLastApplied(inner map[string]any) bool {
	text, present := annotationsOf(inner)[LastApplied]
	if !present {
		return false
	}
	encoded, _ := text.(string)
	var earlier any
	return isSecret(inner) || json.Unmarshal([]byte(encoded), &earlier) != nil || tells(earlier)
}

// Find returns the manifests in an object, at any depth and itself included, that a condition holds for, by path, namespace
// and name, so that those of two states of the object can be matched and compared; those that are equal in that are
// distinguished by their order. They are parts of the object, and no copies. What they are found by means nothing elsewhere, and
// is short.
func Find(object *unstructured.Unstructured, holds func(manifest map[string]any) bool) map[string]map[string]any {
	found := map[string]map[string]any{}
	if object == nil {
		return found
	}
	namesakes := map[path]int{}
	walk(object.Object, 0, func(at path, inner map[string]any) {
		if !holds(inner) {
			return
		}
		namespace, _, _ := unstructured.NestedString(inner, "metadata", "namespace")
		name, _, _ := unstructured.NestedString(inner, "metadata", "name")
		one := at.below(namespace).below(name)
		found[fmt.Sprintf("%d %d", one, namesakes[one])] = inner
		namesakes[one]++
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
			secret[field] = Hidden // malformed, but may be secret nevertheless
		}
		for key := range data {
			data[key] = Hidden
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
