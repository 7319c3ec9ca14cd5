package helm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

const (
	// maxLookupBytes bounds what one lookup finds.
	maxLookupBytes = 16 << 20
	// lookupPage is how many objects of a list are read at a time.
	lookupPage = "250"
)

// LookupIn returns a Lookup that reads from a cluster, until ctx ends. It does not decode what it finds.
// ErrRender says that this is more than a template may look up; other errors are those of the cluster.
func LookupIn(ctx context.Context, config *rest.Config) Lookup {
	in := &lookups{config: config, versions: map[string]*lookupVersion{}}
	return func(q Query) ([][]byte, error) { return in.find(ctx, q) }
}

// lookupOf returns what looks up objects in a cluster; nil without one.
func lookupOf(ctx context.Context, cluster *rest.Config) Lookup {
	if cluster == nil {
		return nil
	}
	return LookupIn(ctx, cluster)
}

// lookups reads objects for templates. It asks for the resources of an API version once.
type lookups struct {
	config   *rest.Config
	versions map[string]*lookupVersion
}

// lookupVersion is an API version of a cluster.
type lookupVersion struct {
	client    rest.Interface
	resources []metav1.APIResource
}

func (l *lookups) find(ctx context.Context, q Query) ([][]byte, error) {
	version, err := l.version(ctx, q.APIVersion)
	if err != nil {
		return nil, fmt.Errorf("find the resource of %s %s: %w", q.APIVersion, q.Kind, err)
	}
	for _, resource := range version.resources {
		if resource.Kind != q.Kind || !isPlain(resource.Name) {
			continue
		}
		request := func() *rest.Request {
			return version.client.Get().NamespaceIfScoped(q.Namespace, resource.Namespaced && q.Namespace != "").Resource(resource.Name)
		}
		pages, err := read(ctx, request, q)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return pages, err
	}
	return nil, nil
}

// isPlain reports whether a name is that of a resource, and not of a subresource.
func isPlain(name string) bool { return name != "" && len(content.IsPathSegmentName(name)) == 0 }

// read reads an object, or a list page by page.
func read(ctx context.Context, request func() *rest.Request, q Query) (pages [][]byte, err error) {
	if q.Name != "" {
		page, err := fetch(ctx, request().Name(q.Name), maxLookupBytes)
		return [][]byte{page}, err
	}
	left, next := int64(maxLookupBytes), ""
	for {
		r := request().Param("limit", lookupPage)
		if next != "" {
			r = r.Param("continue", next)
		}
		page, err := fetch(ctx, r, left)
		if err != nil {
			return nil, err
		}
		pages, left = append(pages, page), left-int64(len(page))
		var list struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(page, &list); err != nil {
			return nil, fmt.Errorf("the response is not valid JSON: %w", err)
		}
		if next = list.Metadata.Continue; next == "" {
			return pages, nil
		}
	}
}

// fetch returns the body of a response, if it has no more than most bytes.
func fetch(ctx context.Context, r *rest.Request, most int64) (body []byte, err error) {
	stream, err := r.SetHeader("Accept", "application/json").Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	body, err = io.ReadAll(io.LimitReader(stream, most+1))
	if err == nil && int64(len(body)) > most {
		return nil, fmt.Errorf("%w: a template looks up more than %d bytes; look up single objects, by name", ErrRender, int64(maxLookupBytes))
	}
	return body, err
}

// version returns an API version, and asks for its resources once.
func (l *lookups) version(ctx context.Context, apiVersion string) (*lookupVersion, error) {
	if known := l.versions[apiVersion]; known != nil {
		return known, nil
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRender, err)
	}
	for _, segment := range []string{gv.Group, gv.Version} {
		if len(content.IsPathSegmentName(segment)) > 0 {
			return nil, fmt.Errorf("%w: apiVersion %q is not valid", ErrRender, apiVersion)
		}
	}
	config := rest.CopyConfig(l.config)
	config.GroupVersion, config.APIPath = &gv, "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	body, err := fetch(ctx, client.Get(), maxLookupBytes)
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("the response is not valid JSON: %w", err)
	}
	l.versions[apiVersion] = &lookupVersion{client: client, resources: list.APIResources}
	return l.versions[apiVersion], nil
}
