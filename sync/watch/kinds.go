package watch

import (
	"context"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// Mapping asks a mapper for a kind, in the first of some versions that is served, or in any.
// A mapper may ask its API server, and heeds no context: where ctx ends first, its cause is
// returned, and the mapper is left to give up by itself.
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

// IsBuiltIn tells whether a group comes with every API server: it is there while the server
// is. Other groups come from CustomResourceDefinitions or from servers of their own, also
// those of Kubernetes, like metrics.k8s.io and gateway.networking.k8s.io.
func IsBuiltIn(group string) bool {
	return !strings.Contains(group, ".") || group == apiextensionsv1.GroupName || clientgoscheme.Scheme.IsGroupRegistered(group)
}
