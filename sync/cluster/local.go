package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/sync/reconcile/turns"
)

// NewLocal returns the cluster that the controllers' own objects live in. config and from are those
// of the manager, whose cache is shared. scheme is used by all clients, including those of other
// clusters; nil means the kinds of Kubernetes and our own. NewLocal reads the version and the UID
// of the cluster from the API server. The cluster's context is ctx.
func NewLocal(ctx context.Context, config *rest.Config, from cache.Cache, scheme *runtime.Scheme) (*Cluster, error) {
	known, err := newKinds(scheme)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS, config.RateLimiter = -1, nil
	c := &Cluster{
		ctx: ctx, kinds: known, config: config, views: newViews(),
		lost:     func() error { return nil },
		returned: func() <-chan struct{} { return nil },
	}
	if _, err := c.open(); err != nil {
		return nil, err
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := c.client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace); err != nil {
		return nil, fmt.Errorf("get namespace %s: %w", metav1.NamespaceSystem, err)
	}
	c.uid = string(namespace.UID)
	version, err := c.discovery.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("get version: %w", err)
	}
	c.version = version.GitVersion
	c.remember(from)
	return c, nil
}

// named returns the local cluster under the name of a KubernetesCluster without a kubeconfig.
func (c *Cluster) named(ctx context.Context, name types.NamespacedName, held *turns.Group) *Cluster {
	named := *c
	named.name, named.ctx, named.holds, named.views = name, ctx, held, newViews()
	return &named
}
