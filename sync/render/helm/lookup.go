package helm

import (
	"context"
	"fmt"
	"path"
	"regexp"

	"helm.sh/helm/v3/pkg/chart"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// lookup is the template function that reads from the cluster, as templates call it.
var lookup = regexp.MustCompile(`\{\{[^}]*\blookup\b`)

// LookingUp returns a template of a chart, or of one of its subcharts, that looks up objects of the
// cluster; empty if there is none. Without Options.Cluster it finds nothing, as it does before an
// install.
func LookingUp(c *chart.Chart) string {
	for _, template := range c.Templates {
		if lookup.Match(template.Data) {
			return path.Join(c.ChartFullPath(), template.Name)
		}
	}
	for _, sub := range c.Dependencies() {
		if template := LookingUp(sub); template != "" {
			return template
		}
	}
	return ""
}

// Query is what a template looks up. Without a name, it is a list.
type Query struct{ APIVersion, Kind, Namespace, Name string }

// Lookup returns what a query finds, as JSON: an object, or a list in pages; nothing if there is no such
// object.
type Lookup func(Query) (pages [][]byte, err error)

// maxLookups bounds how often one chart may ask while it is rendered.
const maxLookups = 1000

// provider answers the lookups of templates. It implements engine.ClientProvider.
type provider struct {
	lookup Lookup
	asked  int
}

// GetClientFor returns what answers lookups of a kind. Whether that has namespaces is up to the Lookup.
func (p *provider) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return looked{provider: p, query: Query{APIVersion: apiVersion, Kind: kind}}, true, nil
}

// looked answers the lookups of a kind. Templates call nothing but Get and List.
type looked struct {
	dynamic.NamespaceableResourceInterface
	provider *provider
	query    Query
}

// Namespace implements dynamic.NamespaceableResourceInterface.
func (l looked) Namespace(namespace string) dynamic.ResourceInterface {
	l.query.Namespace = namespace
	return l
}

// Get implements dynamic.ResourceInterface.
func (l looked) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	l.query.Name = name
	pages, err := l.ask()
	if err != nil {
		return nil, err
	}
	return decode[*unstructured.Unstructured](pages[0])
}

// List implements dynamic.ResourceInterface.
func (l looked) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	pages, err := l.ask()
	if err != nil {
		return nil, err
	}
	var all *unstructured.UnstructuredList
	for _, page := range pages {
		list, err := decode[*unstructured.UnstructuredList](page)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = list
			continue
		}
		all.Items = append(all.Items, list.Items...)
	}
	all.SetContinue("")
	all.SetRemainingItemCount(nil)
	return all, nil
}

// ask returns at least one page, or that there is nothing.
func (l looked) ask() ([][]byte, error) {
	if l.provider.asked++; l.provider.asked > maxLookups {
		return nil, fmt.Errorf("%w: templates look up objects more than %d times", ErrRender, maxLookups)
	}
	pages, err := l.provider.lookup(l.query)
	if err != nil {
		return nil, err
	}
	if len(pages) == 0 {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: l.query.Kind}, l.query.Name)
	}
	return pages, nil
}

// decode decodes an object or a list.
func decode[T runtime.Object](data []byte) (T, error) {
	found, err := runtime.Decode(unstructured.UnstructuredJSONScheme, data)
	if err != nil {
		var none T
		return none, err
	}
	o, ok := found.(T)
	if !ok {
		return o, fmt.Errorf("the cluster returned %T instead of %T", found, o)
	}
	return o, nil
}
