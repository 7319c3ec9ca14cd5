package ignore

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Prefixes of the keys in the format FieldsV1: of a field, of a list item by its keys, and of one by
// its value.
const (
	fieldKey = "f:"
	itemKey  = "k:"
	valueKey = "v:"
)

// fields is a set of fields at one place of an object, in the format FieldsV1. Nil: none of the managers
// whose set it is manages anything there. Empty: what is there is managed as a whole.
type fields map[string]any

// at returns the fields at a key.
func (f fields) at(key string) fields {
	below, found := f[key].(map[string]any)
	if !found {
		return nil
	}
	return below
}

// owners are the fields at one place that the manager in question has applied, and those of all other managers.
type owners struct{ ours, others fields }

func (o owners) at(key string) owners { return owners{o.ours.at(key), o.others.at(key)} }

// whole reports whether what is at the place is managed as one.
func (o owners) whole() bool {
	return (o.ours != nil || o.others != nil) && len(o.ours) == 0 && len(o.others) == 0
}

// ownersOf returns who manages the fields of a live object. Ours are those that a manager has applied.
func ownersOf(live *unstructured.Unstructured, manager string) (owners, error) {
	o := owners{}
	for _, entry := range live.GetManagedFields() {
		if entry.FieldsV1 == nil {
			continue
		}
		var set map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &set); err != nil {
			return owners{}, fmt.Errorf("read managed fields: %w", err)
		}
		to := &o.others
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			to = &o.ours
		}
		if *to == nil {
			*to = fields{}
		}
		Unite(*to, set)
	}
	return o, nil
}

// Unite adds the fields in more to those in all. Both are in the format FieldsV1.
func Unite(all, more map[string]any) {
	for key, value := range more {
		known, ok := all[key].(map[string]any)
		set, isMap := value.(map[string]any)
		if !ok || !isMap {
			all[key] = value
			continue
		}
		Unite(known, set)
	}
}

// itemOf returns the key in the sets that stands for an item of a list, and the item of the live list that
// it stands for; found is false if no manager manages such an item. keyed reports whether the items of the
// list are known by their keys or values at all.
func (o owners) itemOf(item any, live []any) (key string, at int, found, keyed bool) {
	for _, key := range o.itemKeys() {
		keyed = true
		if !names(key, item, false) {
			continue
		}
		if at := slices.IndexFunc(live, func(other any) bool { return names(key, other, true) }); at >= 0 {
			return key, at, true, true
		}
	}
	return "", -1, false, keyed
}

// itemKeys returns the keys of list items in the sets, in a stable order.
func (o owners) itemKeys() []string {
	var keys []string
	for _, set := range []fields{o.ours, o.others} {
		for key := range set {
			if strings.HasPrefix(key, itemKey) || strings.HasPrefix(key, valueKey) {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// names reports whether a key of a set stands for a list item. What comes from a source may lack keys that
// have a default; complete items have all.
func names(key string, item any, complete bool) bool {
	if text, is := strings.CutPrefix(key, valueKey); is {
		var value any
		return json.Unmarshal([]byte(text), &value) == nil && same(item, value)
	}
	object, isMap := item.(map[string]any)
	if !isMap {
		return false
	}
	some := false
	for name, value := range keysOf(key) {
		own, has := object[name]
		switch {
		case has && !same(own, value), !has && complete:
			return false
		case has:
			some = true
		}
	}
	return some
}

// keysOf returns the keys of a list item.
func keysOf(key string) map[string]any {
	var keys map[string]any
	if text, is := strings.CutPrefix(key, itemKey); !is || json.Unmarshal([]byte(text), &keys) != nil {
		return nil
	}
	return keys
}

// same compares JSON values. Whole numbers may be of different types.
func same(a, b any) bool {
	if n, ok := a.(int64); ok {
		a = float64(n)
	}
	return reflect.DeepEqual(a, b)
}
