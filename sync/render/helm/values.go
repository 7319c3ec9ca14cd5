package helm

import "maps"

// MergeValues merges layers of values; later ones win. Maps are merged key by key, everything else,
// including lists, is replaced. A null stays in the result, because it tells Helm to delete a
// chart's default. The layers are not changed, and the result shares nothing with them.
func MergeValues(layers ...map[string]any) map[string]any {
	merged := map[string]any{}
	for _, layer := range layers {
		mergeInto(merged, layer)
	}
	return merged
}

func mergeInto(dst, src map[string]any) {
	for key, value := range src {
		over, isMap := value.(map[string]any)
		if !isMap {
			dst[key] = copyValue(value)
			continue
		}
		under, ok := dst[key].(map[string]any)
		if !ok {
			under = map[string]any{}
			dst[key] = under
		}
		mergeInto(under, over)
	}
}

// copyValue copies a value of the types that YAML and JSON have.
func copyValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return copyValues(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = copyValue(v[i])
		}
		return list
	default:
		return v
	}
}

func copyValues(values map[string]any) map[string]any {
	if values == nil {
		return nil
	}
	copied := maps.Clone(values)
	for key, value := range copied {
		copied[key] = copyValue(value)
	}
	return copied
}
