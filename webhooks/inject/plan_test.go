package inject

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/webhooks/registration"
)

const system = "waybill-system"

// plural resolves every kind but Node, which is cluster-scoped, and Unknown.
func plural(gk schema.GroupKind) (schema.GroupResource, bool) {
	if gk.Kind == "Node" || gk.Kind == "Unknown" {
		return schema.GroupResource{}, false
	}
	return schema.GroupResource{Group: gk.Group, Resource: strings.ToLower(gk.Kind) + "s"}, true
}

func kindsOf(names ...string) []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, name := range names {
		kinds = append(kinds, schema.ParseGroupKind(name))
	}
	return kinds
}

func resources(names ...string) []schema.GroupResource {
	var list []schema.GroupResource
	for _, name := range names {
		list = append(list, schema.ParseGroupResource(name))
	}
	return list
}

// C32, C51
func TestPlan_isOneEntryForEachSetOfKinds(t *testing.T) {
	for _, c := range []struct {
		reason string
		listed map[string][]schema.GroupKind
		want   []registration.Injection
	}{
		{"nothing is listed", nil, nil},
		{"the same kinds in two namespaces", map[string][]schema.GroupKind{
			"b": kindsOf("Service", "Deployment.apps"), "a": kindsOf("Deployment.apps", "Service"),
		}, []registration.Injection{{Resources: resources("services", "deployments.apps"), Namespaces: []string{"a", "b"}}}},
		{"other kinds in another namespace", map[string][]schema.GroupKind{
			"a": kindsOf("Service"), "b": kindsOf("Service", "ConfigMap"),
		}, []registration.Injection{
			{Resources: resources("configmaps", "services"), Namespaces: []string{"b"}},
			{Resources: resources("services"), Namespaces: []string{"a"}},
		}},
		{"what the cluster does not know, and what has no namespace, is left out", map[string][]schema.GroupKind{
			"a": kindsOf("Service", "Unknown.example.com", "Node"), "b": kindsOf("Node"),
		}, []registration.Injection{{Resources: resources("services"), Namespaces: []string{"a"}}}},
		{"our own namespace is left out", map[string][]schema.GroupKind{system: kindsOf("Service")}, nil},
	} {
		assert.Equal(t, c.want, plan(c.listed, plural, system), c.reason)
	}
}

// covers says whether an object of that resource is looked at there.
func covers(plan []registration.Injection, resource schema.GroupResource, namespace string) bool {
	found := 0
	for _, p := range plan {
		if slices.Contains(p.Resources, resource) && slices.Contains(p.Namespaces, namespace) != p.Every {
			found++
		}
	}
	return found == 1
}

// C51: past a bound more is looked at than is listed, and never less.
func TestPlan_isBounded(t *testing.T) {
	for _, c := range []struct {
		reason            string
		namespaces, kinds int
		long              bool
		entries           int
		every             bool
	}{
		{reason: "few sets", namespaces: 20, kinds: 20, entries: 20},
		{reason: "as many sets as namespaces", namespaces: 2000, kinds: 2000, entries: maxEntries},
		{reason: "too many names for so many entries", namespaces: 5000, kinds: 200, long: true, entries: maxEntries / 2},
		{reason: "too many names for any entry", namespaces: 20_000, kinds: 3, long: true, entries: 1, every: true},
	} {
		listed := map[string][]schema.GroupKind{}
		for i := range c.namespaces {
			name := fmt.Sprintf("n%d", i)
			if c.long {
				name += strings.Repeat("x", 57)
			}
			listed[name] = kindsOf("Service", fmt.Sprintf("Kind%d.example.com", i%c.kinds))
		}
		planned := plan(listed, plural, system)
		assert.Equal(t, c.entries, len(planned), c.reason)
		assert.Equal(t, c.every, planned[0].Every, c.reason)
		assert.LessOrEqual(t, size(planned), maxSize, c.reason)
		for namespace, kinds := range listed {
			for _, gk := range kinds {
				r, _ := plural(gk)
				require.True(t, covers(planned, r, namespace), "%s: %s in %s", c.reason, r, namespace)
			}
		}
		assert.False(t, covers(planned, schema.GroupResource{Resource: "services"}, system), c.reason)
		assert.True(t, reflect.DeepEqual(planned, plan(listed, plural, system)), "%s: the same for the same", c.reason)
	}
}
