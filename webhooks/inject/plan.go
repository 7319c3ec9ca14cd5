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
	// maxEntries is how many entries the webhook configuration gets: API servers go through
	// them at every write. Beyond it the kinds of the sets with fewest namespaces become one set,
	// so that some objects are looked at which nobody lists, and nobody is left out.
	maxEntries = 30

	// maxSize bounds what the entries take, in bytes. Beyond it there are fewer entries, and in
	// the end one for all kinds, in every namespace.
	maxSize = 400_000

	// entrySize is what an entry takes beside resources and namespaces.
	entrySize = 4096
)

// resolver finds the resource of a kind, where the cluster has it and it is namespaced.
type resolver func(schema.GroupKind) (schema.GroupResource, bool)

// plan says what to register for the kinds that are listed, by namespace: one entry per distinct
// set of kinds (C51). The namespace except is left out, which is our own: when nobody answers, what
// brings us back should not wait for that. The result is sorted, and the same for the same input.
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

// join makes one of all that have the same resources, in the order of those.
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

// merge keeps the sets with most namespaces and makes one of the others.
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
