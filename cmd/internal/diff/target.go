package diff

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/cmd/internal/fleet"
)

// target adapts a cluster to the release engine.
type target struct {
	config    *rest.Config
	mapper    meta.RESTMapper
	discovery discovery.CachedDiscoveryInterface
}

func newTarget(cluster *fleet.Cluster) (*target, error) {
	config, httpClient, err := cluster.REST()
	if err != nil {
		return nil, err
	}
	mapper, err := cluster.Mapper()
	if err != nil {
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &target{config: config, mapper: mapper, discovery: memory.NewMemCacheClient(client)}, nil
}

// Config implements release.Target.
func (t *target) Config() *rest.Config { return t.config }

// Mapper implements release.Target.
func (t *target) Mapper() meta.RESTMapper { return t.mapper }

// Discovery implements release.Target.
func (t *target) Discovery() discovery.CachedDiscoveryInterface { return t.discovery }
