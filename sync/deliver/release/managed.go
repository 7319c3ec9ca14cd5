package release

import (
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/ignore"
)

// helmManager is the field manager of the helm command.
const helmManager = "helm"

// setByHelm returns the part of o that Helm has set in live, whether Waybill or a user ran it,
// according to live's managed fields. The record of a revision that is not vouched for may claim any
// field; this way it gives away none that another controller or user has set.
func setByHelm(o, live *unstructured.Unstructured) (map[string]any, error) {
	byHelm, byOthers := map[string]any{}, map[string]any{}
	for _, entry := range live.GetManagedFields() {
		if entry.FieldsV1 == nil {
			continue
		}
		var set map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &set); err != nil {
			return nil, err
		}
		helms := entry.Manager == helmManager || entry.Manager == v1alpha1.HelmFieldManager
		if helms && entry.Subresource == "" {
			ignore.Unite(byHelm, set)
		} else {
			ignore.Unite(byOthers, set)
		}
	}
	return mapWithin(o.Object, managed{byHelm: byHelm, byOthers: byOthers}), nil
}

// managed are the fields at one place of an object: those that Helm has set, and those that others have.
// Both are in the format FieldsV1.
type managed struct{ byHelm, byOthers map[string]any }

// at returns the fields at a key; false if none of them is Helm's.
func (m managed) at(key string) (managed, bool) {
	byHelm, ok := m.byHelm[key].(map[string]any)
	byOthers, _ := m.byOthers[key].(map[string]any)
	return managed{byHelm: byHelm, byOthers: byOthers}, ok
}

// Prefixes of the keys in the format FieldsV1: of a field, of a list item by its keys, and of one by
// its value.
const (
	fieldKey = "f:"
	itemKey  = "k:"
	valueKey = "v:"
)

// within returns the part of value that is Helm's; nil if there is none. A field without fields of its
// own is Helm's as a whole: it is atomic, or Helm has set it to something empty, such as
// `resources: {}`. In the latter case others may have set something in it since, and then nothing
// that value says of it is Helm's.
func within(value any, fields managed) any {
	if len(fields.byHelm) == 0 {
		if len(fields.byOthers) > 0 {
			return nil
		}
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

func mapWithin(value map[string]any, fields managed) map[string]any {
	found := map[string]any{}
	for key, child := range value {
		set, ok := fields.at(fieldKey + key)
		if !ok {
			continue
		}
		if part := within(child, set); part != nil {
			found[key] = part
		}
	}
	return found
}

func listWithin(list []any, fields managed) []any {
	var found []any
	for _, item := range list {
		for key := range fields.byHelm {
			set, _ := fields.at(key)
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
func itemWithin(item any, key string, set managed) any {
	if text, ok := strings.CutPrefix(key, valueKey); ok {
		var value any
		if json.Unmarshal([]byte(text), &value) == nil && same(item, value) {
			return item
		}
		return nil
	}
	text, ok := strings.CutPrefix(key, itemKey)
	object, isMap := item.(map[string]any)
	var keys map[string]any
	if !ok || !isMap || json.Unmarshal([]byte(text), &keys) != nil {
		return nil
	}
	found := mapWithin(object, set)
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
