package release

import (
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
)

// helmManager is the field manager of the helm command.
const helmManager = "helm"

// setByHelm returns the part of o that Helm has set in live, whether Waybill or somebody ran it,
// according to live's managed fields. The record of a revision that nobody vouches for may claim any
// field; this way it gives away none that another controller or user has set.
func setByHelm(o, live *unstructured.Unstructured) (map[string]any, error) {
	fields := map[string]any{}
	for _, entry := range live.GetManagedFields() {
		helms := entry.Manager == helmManager || entry.Manager == v1alpha1.HelmFieldManager
		if !helms || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var set map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &set); err != nil {
			return nil, err
		}
		unite(fields, set)
	}
	return mapWithin(o.Object, fields), nil
}

// unite adds the fields in more to those in all. Both are in the format FieldsV1.
func unite(all, more map[string]any) {
	for key, value := range more {
		known, ok := all[key].(map[string]any)
		set, isMap := value.(map[string]any)
		if !ok || !isMap {
			all[key] = value
			continue
		}
		unite(known, set)
	}
}

// Prefixes of the keys in the format FieldsV1: of a field, of a list item by its keys, and of one by
// its value.
const (
	fieldKey = "f:"
	itemKey  = "k:"
	valueKey = "v:"
)

// within returns the part of value that is in fields; nil if there is none. A field without fields
// of its own is there as a whole.
func within(value any, fields map[string]any) any {
	if len(fields) == 0 {
		return value
	}
	switch value := value.(type) {
	case map[string]any:
		if found := mapWithin(value, fields); len(found) > 0 {
			return found
		}
	case []any:
		if found := listWithin(value, fields); len(found) > 0 {
			return found
		}
	}
	return nil
}

func mapWithin(value, fields map[string]any) map[string]any {
	found := map[string]any{}
	for key, child := range value {
		set, ok := fields[fieldKey+key].(map[string]any)
		if !ok {
			continue
		}
		if part := within(child, set); part != nil {
			found[key] = part
		}
	}
	return found
}

func listWithin(list []any, fields map[string]any) []any {
	var found []any
	for _, item := range list {
		for key, set := range fields {
			if part := itemWithin(item, key, set); part != nil {
				found = append(found, part)
				break
			}
		}
	}
	return found
}

// itemWithin returns the part of a list item that is in set, with the keys of the item; nil if key
// is that of another item.
func itemWithin(item any, key string, set any) any {
	if text, ok := strings.CutPrefix(key, valueKey); ok {
		var value any
		if json.Unmarshal([]byte(text), &value) == nil && same(item, value) {
			return item
		}
		return nil
	}
	text, ok := strings.CutPrefix(key, itemKey)
	object, isMap := item.(map[string]any)
	fields, isSet := set.(map[string]any)
	var keys map[string]any
	if !ok || !isMap || !isSet || json.Unmarshal([]byte(text), &keys) != nil {
		return nil
	}
	found := mapWithin(object, fields)
	for name, value := range keys {
		own, ok := object[name]
		if !ok {
			continue // the API server has filled in its default
		}
		if !same(own, value) {
			return nil
		}
		found[name] = own
	}
	return found
}

// same compares JSON values. Whole numbers may be of different types.
func same(a, b any) bool {
	if n, ok := a.(int64); ok {
		a = float64(n)
	}
	return reflect.DeepEqual(a, b)
}
