package adopt

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/waybill/internal/fleet"
)

// resource is a kind as an API server offers it.
type resource struct {
	schema.GroupVersionKind

	words      []string // names of the kind in commands, in lower case
	namespaced bool
	verbs      metav1.Verbs
}

// shown returns the kind as written in commands: Deployment.apps, Service.
func (r resource) shown() string {
	if r.Group == "" {
		return r.Kind
	}
	return r.Kind + "." + r.Group
}

// adoptable returns why objects of the kind cannot be components; nil if they can.
func (r resource) adoptable() error {
	switch {
	case !r.namespaced:
		return fmt.Errorf("kind %s is cluster-scoped: an Application has components in its own namespace only", r.shown())
	case r.GroupVersionKind.GroupKind() == v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationKind).GroupKind():
		return errors.New("an Application is no component: it is named in spec.dependencies of those that need it")
	case !slices.Contains(r.verbs, "list") || !slices.Contains(r.verbs, "patch"):
		return fmt.Errorf("objects of kind %s cannot be listed and annotated", r.shown())
	}
	return nil
}

// discover returns the kinds that a cluster offers, each in its preferred version, and a note on
// groups that could not be discovered.
func discover(cluster *fleet.Cluster) (all []resource, note string, err error) {
	config, httpClient, err := cluster.REST()
	if err != nil {
		return nil, "", err
	}
	c, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, "", fmt.Errorf("connect: %w", err)
	}
	lists, err := c.ServerPreferredResources()
	if discovery.IsGroupDiscoveryFailedError(err) {
		note, err = err.Error(), nil // an API service is down; the others answer
	}
	if err != nil {
		return nil, "", cluster.Explain(err)
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, "", fmt.Errorf("read the kinds of %s: %w", list.GroupVersion, err)
		}
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") {
				all = append(all, newResource(gv, r))
			}
		}
	}
	return all, note, nil
}

func newResource(gv schema.GroupVersion, r metav1.APIResource) resource {
	words := []string{strings.ToLower(r.Kind), r.Name, r.SingularName}
	return resource{GroupVersionKind: gv.WithKind(r.Kind), words: append(words, r.ShortNames...), namespaced: r.Namespaced, verbs: r.Verbs}
}

// find returns the kind that a word means, as in kubectl: Deployment, deployments, deploy,
// Deployment.apps or Deployment.v1.apps. If several groups have the kind and none is given, the
// core group wins.
func find(all []resource, word string) (resource, error) {
	name, group, qualified := strings.Cut(word, ".")
	var found []resource
	for _, r := range all {
		if !slices.Contains(r.words, strings.ToLower(name)) {
			continue
		}
		if !qualified || group == r.Group || group == r.Version+"."+r.Group {
			found = append(found, r)
		}
	}
	core := slices.IndexFunc(found, func(r resource) bool { return r.Group == "" })
	switch {
	case len(found) == 0:
		return resource{}, fmt.Errorf("the cluster offers no kind %q", word)
	case len(found) == 1:
		return found[0], nil
	case core >= 0:
		return found[core], nil
	}
	var shown []string
	for _, r := range found {
		shown = append(shown, r.shown())
	}
	return resource{}, fmt.Errorf("kind %q is in several groups: write %s", word, strings.Join(shown, " or "))
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
func usual(all []resource) []resource {
	return slices.DeleteFunc(slices.Clone(all), func(r resource) bool {
		return r.adoptable() != nil || r.Group == v1alpha1.Group || derived[r.GroupVersionKind.GroupKind()]
	})
}
