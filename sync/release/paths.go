package release

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// differing appends the paths at which a and b differ, in order: `spec.replicas`,
// `spec.containers[0].image`, with keys that contain dots, slashes or brackets in quotes.
func differing(path string, a, b any, paths []string) []string {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			return differingKeys(path, x, y, paths)
		}
	case []any:
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				paths = differing(path+"["+strconv.Itoa(i)+"]", x[i], y[i], paths)
			}
			return paths
		}
	}
	if reflect.DeepEqual(a, b) {
		return paths
	}
	return append(paths, path)
}

func differingKeys(path string, a, b map[string]any, paths []string) []string {
	keys := maps.Clone(a)
	if keys == nil {
		keys = map[string]any{}
	}
	maps.Copy(keys, b)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		paths = differing(under(path, key), a[key], b[key], paths)
	}
	return paths
}

func under(path, key string) string {
	switch {
	case strings.ContainsAny(key, "./[]"):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}
