package cluster

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Served asks the API server which kinds it serves in a version, bypassing the caches of Mapper and
// Discovery. The set is empty if the API server does not serve the version. Mapper does not notice
// by itself that a kind is gone; a caller that does must call meta.MaybeResetRESTMapper.
func (c *Cluster) Served(ctx context.Context, version schema.GroupVersion) (sets.Set[string], error) {
	path := "/apis/" + version.String()
	if version.Group == "" {
		path = "/api/" + version.Version
	}
	list := &metav1.APIResourceList{}
	err := c.discovery.RESTClient().Get().AbsPath(path).Do(ctx).Into(list)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get %s: %w", path, err)
	}
	kinds := sets.New[string]()
	for i := range list.APIResources {
		if subresource := strings.Contains(list.APIResources[i].Name, "/"); !subresource {
			kinds.Insert(list.APIResources[i].Kind)
		}
	}
	return kinds, nil
}
