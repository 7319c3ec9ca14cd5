package watch

import (
	"context"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// Mapping asks a mapper for a kind, in the first of the given versions that is served, or in any
// version if none is given. A mapper may send requests and takes no context: if ctx ends first,
// Mapping returns its cause and leaves the mapper to time out by itself.
func Mapping(ctx context.Context, mapper meta.RESTMapper, kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	type answer struct {
		mapping *meta.RESTMapping
		err     error
	}
	answers := make(chan answer, 1)
	go func() {
		mapping, err := mapper.RESTMapping(kind, versions...)
		answers <- answer{mapping, err}
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case got := <-answers:
		return got.mapping, got.err
	}
}

// IsBuiltIn reports whether a group is part of every API server, and so always served. Other groups
// come from CustomResourceDefinitions or aggregated API servers, including some of Kubernetes
// itself, like metrics.k8s.io and gateway.networking.k8s.io.
func IsBuiltIn(group string) bool {
	return !strings.Contains(group, ".") || group == apiextensionsv1.GroupName || clientgoscheme.Scheme.IsGroupRegistered(group)
}
