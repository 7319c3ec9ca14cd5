package ignore

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// ToApply returns what a manager server-side-applies over a live object instead of what is wanted, which is
// not changed. Of the fields that are named, those that others manage are left out, so that they are
// given up; those that the manager alone has applied are as they are, because leaving them out would
// remove them. What others have set to another value than applied is theirs alone. repeats reports whether
// anything of the live object is applied again: if another manager sets that meanwhile, it is reverted.
func (p *Pointers) ToApply(wanted map[string]any, live *unstructured.Unstructured, manager string) (applied map[string]any, repeats bool, err error) {
	if p == nil {
		return wanted, false, nil
	}
	managed, err := ownersOf(live, manager)
	if err != nil {
		return nil, false, err
	}
	applied = p.replace(wanted, live, managed, func(at *place) (any, bool) {
		value, found := at.owned()
		repeats = repeats || found
		return value, found
	})
	return applied, repeats, nil
}

// ToMerge returns what is wanted with the fields that are named as they are in a live object, for a patch
// that sets what differs. wanted is not changed.
func (p *Pointers) ToMerge(wanted map[string]any, live *unstructured.Unstructured) (map[string]any, error) {
	if p == nil {
		return wanted, nil
	}
	managed, err := ownersOf(live, "")
	if err != nil {
		return nil, err
	}
	return p.replace(wanted, live, managed, (*place).asIs), nil
}

// Without returns what was wanted before, without the fields that are named, and what has nothing else in it,
// so that they are not removed when they are no longer wanted. before is not changed.
func (p *Pointers) Without(before map[string]any) map[string]any {
	if p == nil {
		return before
	}
	return p.replace(before, &unstructured.Unstructured{}, owners{}, nil)
}

func (p *Pointers) replace(wanted map[string]any, live *unstructured.Unstructured, managed owners, by func(*place) (any, bool)) map[string]any {
	out := runtime.DeepCopyJSON(wanted)
	for _, one := range p.list {
		at := place{wanted: out, live: live.Object, exists: live.Object != nil, owners: managed, by: by}
		at.replace(one)
	}
	return out
}

// place is a place in what is wanted, and in the live object.
type place struct {
	wanted, live any
	// exists: there is something at the place in the live object.
	exists bool
	owners
	// inWhole: the place is within something that is managed as a whole.
	inWhole bool
	// by returns what is written at the place instead; false for nothing. Nil: nothing ever is, whatever
	// the live object has.
	by func(*place) (any, bool)
}

// replace replaces what a pointer names, seen from the place, and returns what the place holds then;
// false for nothing.
func (at *place) replace(way pointer) (any, bool) {
	if len(way) == 0 {
		if at.by == nil {
			return nil, false
		}
		return at.by(at)
	}
	switch wanted := at.wanted.(type) {
	case map[string]any:
		at.inMap(wanted, way)
		return wanted, at.by != nil || len(wanted) > 0
	case []any:
		return at.inList(wanted, way), true
	}
	return at.wanted, true
}

func (at *place) below() place {
	return place{by: at.by, inWhole: at.inWhole || at.whole()}
}

func (at *place) inMap(wanted map[string]any, way pointer) {
	key := way[0]
	child := at.below()
	child.owners = at.at(fieldKey + key)
	live, _ := at.live.(map[string]any)
	child.live, child.exists = live[key]
	var known bool
	if child.wanted, known = wanted[key]; !known && len(way) > 1 {
		return
	}
	if value, found := child.replace(way[1:]); found {
		wanted[key] = value
	} else {
		delete(wanted, key)
	}
}

// inList replaces something in a list, or an item of it. What is in an item that the live object does not
// have stays as it is wanted.
func (at *place) inList(wanted []any, way pointer) []any {
	i, err := strconv.Atoi(way[0])
	if err != nil || i < 0 || i >= len(wanted) {
		return wanted
	}
	child := at.below()
	child.wanted = wanted[i]
	live, _ := at.live.([]any)
	key, same, found, keyed := at.itemOf(wanted[i], live)
	switch {
	case found:
		child.owners = at.at(key)
		child.live, child.exists = live[same], true
	case !keyed && i < len(live):
		child.live, child.exists, child.inWhole = live[i], true, true
	case len(way) > 1 && at.by != nil:
		return wanted
	}
	value, has := child.replace(way[1:])
	if !has {
		return slices.Delete(wanted, i, i+1)
	}
	wanted[i] = withKeys(value, child.live, key)
	return wanted
}

// withKeys returns a list item with those of its keys that it lacks.
func withKeys(item, live any, key string) any {
	object, isMap := item.(map[string]any)
	from, known := live.(map[string]any)
	if isMap && known {
		for name := range keysOf(key) {
			if _, has := object[name]; !has {
				object[name] = from[name]
			}
		}
	}
	return item
}

// asIs returns what the live object has.
func (at *place) asIs() (any, bool) {
	return runtime.DeepCopyJSONValue(at.live), at.exists
}

// owned returns what the live object has that no other manager manages.
func (at *place) owned() (any, bool) {
	if at.inWhole {
		return at.asIs()
	}
	if !at.exists || at.ours == nil {
		return nil, false
	}
	return at.alone()
}

// alone returns the part of the live object that only we manage; false for none.
func (at *place) alone() (any, bool) {
	if len(at.ours) == 0 {
		if at.others != nil {
			return nil, false
		}
		return at.asIs()
	}
	switch live := at.live.(type) {
	case map[string]any:
		return at.aloneInMap(live)
	case []any:
		return at.aloneInList(live)
	}
	return nil, false
}

func (at *place) aloneInMap(live map[string]any) (any, bool) {
	part := map[string]any{}
	for name, value := range live {
		child := place{live: value, exists: true, owners: at.at(fieldKey + name)}
		if child.ours == nil {
			continue
		}
		if own, found := child.alone(); found {
			part[name] = own
		}
	}
	return part, len(part) > 0 || at.others == nil
}

func (at *place) aloneInList(live []any) (any, bool) {
	part := []any{}
	for _, item := range live {
		for _, key := range at.itemKeys() {
			child := place{live: item, exists: true, owners: at.at(key)}
			if child.ours == nil || !names(key, item, true) {
				continue
			}
			if own, found := child.alone(); found {
				part = append(part, withKeys(own, item, key))
			}
			break
		}
	}
	return part, len(part) > 0 || at.others == nil
}
