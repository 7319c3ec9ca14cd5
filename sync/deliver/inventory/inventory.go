package inventory

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
)

// The ID of an entry is `<namespace>_<name>_<group>_<kind>`. Of these, only a name may contain an
// underscore: RBAC names may be any path segment. No name contains a percent sign, so the escape is
// unambiguous.
const (
	separator = "_"
	escaped   = "%5F"
)

// Encode returns identities as status entries, sorted, each object once: of two versions of one
// object, the last counts.
func Encode(ids []manifest.ID) []v1alpha1.InventoryEntry {
	versions := make(map[manifest.ID]string, len(ids))
	for _, id := range ids {
		versions[id.Key()] = id.Version
	}
	entries := make([]v1alpha1.InventoryEntry, 0, len(versions))
	for id, version := range versions {
		entries = append(entries, v1alpha1.InventoryEntry{ID: encodeID(id), Version: version})
	}
	slices.SortFunc(entries, func(a, b v1alpha1.InventoryEntry) int { return cmp.Compare(a.ID, b.ID) })
	return entries
}

// Decode reads status entries. The error names entries that it cannot read; the identities of the
// others are returned all the same.
func Decode(entries []v1alpha1.InventoryEntry) ([]manifest.ID, error) {
	ids := make([]manifest.ID, 0, len(entries))
	var errs []error
	for _, entry := range entries {
		id, err := decodeID(entry)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		ids = append(ids, id)
	}
	return ids, errors.Join(errs...)
}

// Diff returns what is in old and not in new, in the order of old. The version of
// an object does not count.
func Diff(old, new []manifest.ID) []manifest.ID {
	known := keys(new)
	var gone []manifest.ID
	for _, id := range old {
		if !known[id.Key()] {
			gone = append(gone, id)
		}
	}
	return gone
}

// Merge returns what is in either list, each object once: first all of new, then what only old has,
// both in their order.
func Merge(old, new []manifest.ID) []manifest.ID {
	return append(slices.Clone(new), Diff(old, new)...)
}

func keys(ids []manifest.ID) map[manifest.ID]bool {
	set := make(map[manifest.ID]bool, len(ids))
	for _, id := range ids {
		set[id.Key()] = true
	}
	return set
}

func encodeID(id manifest.ID) string {
	name := strings.ReplaceAll(id.Name, separator, escaped)
	return strings.Join([]string{id.Namespace, name, id.Group, id.Kind}, separator)
}

func decodeID(entry v1alpha1.InventoryEntry) (manifest.ID, error) {
	parts := strings.Split(entry.ID, separator)
	if len(parts) != 4 || parts[1] == "" || parts[3] == "" {
		return manifest.ID{}, fmt.Errorf("read inventory entry %q: not of the form <namespace>_<name>_<group>_<kind>", entry.ID)
	}
	return manifest.ID{
		Namespace: parts[0],
		Name:      strings.ReplaceAll(parts[1], escaped, separator),
		Group:     parts[2],
		Kind:      parts[3],
		Version:   entry.Version,
	}, nil
}
