package inject

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/webhooks/registration"
)

const (
	// maxEntries limits the entries of the webhook configuration: API servers evaluate them at
	// every write. Beyond it, the sets of kinds with the fewest namespaces are merged into one, so
	// that no object is left out, but some are sent to us that no Application lists.
	maxEntries = 30

	// maxSize bounds the size of the entries, in bytes. Beyond it there are fewer entries, and in
	// the end one for all kinds, in every namespace.
	maxSize = 400_000

	// entrySize is the size of an entry without its resources and namespaces.
	entrySize = 4096
)

// resolver finds the resource of a kind, if the cluster has the kind and it is namespaced.
type resolver func(schema.GroupKind) (schema.GroupResource, bool)

// plan returns what to register for the listed kinds, given by namespace: one entry per distinct
// set of kinds. It leaves out the namespace except, which is our own: when no process answers, the
// writes that bring us back should not wait for that. The result is sorted and deterministic.
func plan(listed map[string][]schema.GroupKind, resolve resolver, except string) []registration.Injection {
	var single []registration.Injection
	for _, namespace := range slices.Sorted(maps.Keys(listed)) {
		if resources := resourcesOf(listed[namespace], resolve); namespace != except && len(resources) > 0 {
			single = append(single, registration.Injection{Resources: resources, Namespaces: []string{namespace}})
		}
	}
	sets := join(single)
	for limit := maxEntries; limit > 0; limit /= 2 {
		if merged := merge(sets, limit); size(merged) <= maxSize {
			return merged
		}
	}
	everywhere := merge(sets, 1)[0]
	everywhere.Every, everywhere.Namespaces = true, []string{except}
	return []registration.Injection{everywhere}
}

func resourcesOf(kinds []schema.GroupKind, resolve resolver) []schema.GroupResource {
	var resources []schema.GroupResource
	for _, gk := range kinds {
		if r, ok := resolve(gk); ok {
			resources = append(resources, r)
		}
	}
	slices.SortFunc(resources, registration.CompareResources)
	return slices.Compact(resources)
}

// join merges all that have the same resources, and sorts the result by resources.
func join(injections []registration.Injection) []registration.Injection {
	byResources := map[string]*registration.Injection{}
	for _, i := range injections {
		key := keyOf(i.Resources)
		if byResources[key] == nil {
			byResources[key] = &registration.Injection{Resources: i.Resources}
		}
		byResources[key].Namespaces = append(byResources[key].Namespaces, i.Namespaces...)
	}
	var joined []registration.Injection
	for _, key := range slices.Sorted(maps.Keys(byResources)) {
		i := byResources[key]
		slices.Sort(i.Namespaces)
		joined = append(joined, *i)
	}
	return joined
}

func keyOf(resources []schema.GroupResource) string {
	var key strings.Builder
	for _, r := range resources {
		key.WriteString(r.String() + "\n")
	}
	return key.String()
}

// merge keeps the sets with the most namespaces and merges the others into one.
func merge(sets []registration.Injection, limit int) []registration.Injection {
	if len(sets) <= limit {
		return sets
	}
	sets = slices.Clone(sets)
	slices.SortStableFunc(sets, func(a, b registration.Injection) int {
		return cmp.Compare(len(b.Namespaces), len(a.Namespaces))
	})
	var all registration.Injection
	for _, i := range sets[limit-1:] {
		all.Resources = append(all.Resources, i.Resources...)
		all.Namespaces = append(all.Namespaces, i.Namespaces...)
	}
	slices.SortFunc(all.Resources, registration.CompareResources)
	all.Resources = slices.Compact(all.Resources)
	return join(append(slices.Clone(sets[:limit-1]), all))
}

func size(injections []registration.Injection) int {
	total := 0
	for _, i := range injections {
		total += entrySize
		for _, r := range i.Resources {
			total += len(r.Resource) + len(`"",`)
		}
		for _, namespace := range i.Namespaces {
			total += len(namespace) + len(`"",`)
		}
	}
	return total
}
