package installation

import (
	"fmt"
	"slices"

	"k8s.io/client-go/discovery"

	"waybill.dev/waybill/cmd/internal/fleet"
)

// See sets what charts see of a cluster: its version, the APIs that it offers and, with rights of the
// user, its objects.
func (o *Options) See(cluster *fleet.Cluster) error {
	config, httpClient, err := cluster.REST()
	if err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	o.Cluster = config
	if o.KubeVersion, o.APIVersions, err = capabilities(client); err != nil {
		return cluster.Explain(err)
	}
	return nil
}

// capabilities returns the version of a cluster, and the APIs that it offers.
func capabilities(client discovery.DiscoveryInterface) (version string, apis []string, err error) {
	info, err := client.ServerVersion()
	if err != nil {
		return "", nil, fmt.Errorf("ask for the version of Kubernetes: %w", err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return "", nil, fmt.Errorf("ask for the kinds on offer: %w", err)
	}
	for _, list := range lists {
		apis = append(apis, list.GroupVersion)
		for _, resource := range list.APIResources {
			apis = append(apis, list.GroupVersion+"/"+resource.Kind)
		}
	}
	slices.Sort(apis)
	return info.GitVersion, slices.Compact(apis), nil
}
