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

// touched returns the fields of o that a patch names. Lists are kept whole, because elements are not
// at the same index in a patch; so are maps that the patch replaces or prunes by a directive.
func touched(o, patch map[string]any) map[string]any {
	part := map[string]any{}
	for key, change := range patch {
		if directive, ok := strings.CutPrefix(key, "$"); ok {
			_, list, ofList := strings.Cut(directive, "/") // such as $setElementOrder/containers
			if !ofList {
				return o
			}
			key = list
		}
		value, ok := o[key]
		if !ok {
			continue
		}
		inner, isMap := value.(map[string]any)
		changes, deeper := change.(map[string]any)
		if isMap && deeper {
			value = touched(inner, changes)
		}
		part[key] = value
	}
	return part
}
