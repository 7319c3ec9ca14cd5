package fleet

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Resource is a kind as an API server offers it.
type Resource struct {
	schema.GroupVersionKind

	// Plural is the name of the kind in URLs.
	Plural string
	// Names of the kind in commands, in lower case: its kind, plural, singular and short names.
	Names []string
	// Namespaced is true if objects of the kind are in namespaces.
	Namespaced bool

	verbs metav1.Verbs
}

// String returns the kind as written in commands: Deployment.apps, Service.
func (r Resource) String() string { return r.GroupVersionKind.GroupKind().String() }

// GroupVersionResource returns the name of the kind in URLs.
func (r Resource) GroupVersionResource() schema.GroupVersionResource {
	return r.GroupVersion().WithResource(r.Plural)
}

// Can reports whether the API server offers all of these verbs for objects of the kind.
func (r Resource) Can(verbs ...string) bool {
	return !slices.ContainsFunc(verbs, func(verb string) bool { return !slices.Contains(r.verbs, verb) })
}

// Resources asks the API server for all kinds that it offers, each in its preferred version.
// incomplete says which groups could not be discovered because the server behind them is down; nil
// if none.
func (c *Cluster) Resources() (all []Resource, incomplete, err error) {
	config, httpClient, err := c.REST()
	if err != nil {
		return nil, nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, nil, fmt.Errorf("connect: %w", err)
	}
	lists, err := client.ServerPreferredResources()
	if discovery.IsGroupDiscoveryFailedError(err) {
		incomplete, err = err, nil
	}
	if err != nil {
		return nil, nil, c.Explain(err)
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, nil, fmt.Errorf("read the kinds of %s: %w", list.GroupVersion, err)
		}
		for _, r := range list.APIResources {
			if !strings.Contains(r.Name, "/") { // otherwise it is a subresource
				all = append(all, newResource(gv, r))
			}
		}
	}
	return all, incomplete, nil
}

func newResource(gv schema.GroupVersion, r metav1.APIResource) Resource {
	names := append([]string{strings.ToLower(r.Kind), r.Name, r.SingularName}, r.ShortNames...)
	return Resource{
		GroupVersionKind: gv.WithKind(r.Kind), Plural: r.Name, Names: names, Namespaced: r.Namespaced, verbs: r.Verbs,
	}
}
