package adopt

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
)

// adoptable returns why objects of a kind cannot be components; nil if they can.
func adoptable(r fleet.Resource) error {
	switch {
	case !r.Namespaced:
		return fmt.Errorf("kind %s is cluster-scoped: an Application has components in its own namespace only", r)
	case r.GroupVersionKind.GroupKind() == v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationKind).GroupKind():
		return errors.New("an Application is not a component: it is named in spec.dependencies of those that need it")
	case !r.Can("list", "patch"):
		return fmt.Errorf("objects of kind %s cannot be listed and annotated", r)
	}
	return nil
}

// find returns the kind that a word means, as in kubectl: Deployment, deployments, deploy,
// Deployment.apps or Deployment.v1.apps. If several groups have the kind and none is given, the
// core group wins.
func find(all []fleet.Resource, word string) (fleet.Resource, error) {
	name, group, qualified := strings.Cut(word, ".")
	var found []fleet.Resource
	for _, r := range all {
		if !slices.Contains(r.Names, strings.ToLower(name)) {
			continue
		}
		if !qualified || group == r.Group || group == r.Version+"."+r.Group {
			found = append(found, r)
		}
	}
	core := slices.IndexFunc(found, func(r fleet.Resource) bool { return r.Group == "" })
	switch {
	case len(found) == 0:
		return fleet.Resource{}, fmt.Errorf("the cluster offers no kind %q", word)
	case len(found) == 1:
		return found[0], nil
	case core >= 0:
		return found[core], nil
	}
	var shown []string
	for _, r := range found {
		shown = append(shown, r.String())
	}
	return fleet.Resource{}, fmt.Errorf("kind %q is in several groups: write %s", word, strings.Join(shown, " or "))
}

// derived are kinds whose objects the control plane derives from others, or that record events.
// They are considered only if they are named.
var derived = map[schema.GroupKind]bool{
	{Kind: "Endpoints"}: true, {Kind: "Event"}: true, {Group: "events.k8s.io", Kind: "Event"}: true,
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: true, {Group: "coordination.k8s.io", Kind: "Lease"}: true,
	{Group: "apps", Kind: "ControllerRevision"}: true,
}

// usual returns the kinds that are searched if none is named: every kind that may be a component,
// except ours and the derived ones.
func usual(all []fleet.Resource) []fleet.Resource {
	return slices.DeleteFunc(slices.Clone(all), func(r fleet.Resource) bool {
		return adoptable(r) != nil || r.Group == v1alpha1.Group || derived[r.GroupVersionKind.GroupKind()]
	})
}
