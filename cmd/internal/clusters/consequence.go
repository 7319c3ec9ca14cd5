package clusters

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// consequence returns what becomes of what runs in a cluster when its KubernetesCluster is deleted.
func consequence(ctx context.Context, e *entry, abandon bool) string {
	kc := e.cluster
	if abandon || kc.GetOnDelete() == v1alpha1.DeleteAbandon {
		return fmt.Sprintf("What runs in the cluster stays there: %s is deleted with onDelete Abandon.", describe(kc))
	}
	const inAnyCase = "What ApplicationDefinitions enforce there is uninstalled."
	const wayOut = "--abandon leaves all of it there."
	syncs, err := delivering(ctx, e)
	switch {
	case err != nil:
		return fmt.Sprintf("What GitSyncs have delivered to the cluster is deleted there, with what is in the namespaces among that; which they are is not known: %v.\n%s\n%s", err, inAnyCase, wayOut)
	case len(syncs) == 0:
		return inAnyCase + "\n" + wayOut
	}
	return fmt.Sprintf("What these GitSyncs have delivered to the cluster is deleted there, with what is in the namespaces among that: %s.\n%s\n%s",
		strings.Join(syncs, ", "), inAnyCase, wayOut)
}

// delivering returns the names of the GitSyncs that deliver to a cluster.
func delivering(ctx context.Context, e *entry) ([]string, error) {
	list := &v1alpha1.GitSyncList{}
	if err := e.client.List(ctx, list, client.InNamespace(e.cluster.Namespace)); err != nil {
		return nil, fmt.Errorf("list GitSyncs in namespace %s: %w", e.cluster.Namespace, e.hub.Explain(err))
	}
	var names []string
	for i := range list.Items {
		if slices.ContainsFunc(list.Items[i].Status.Clusters, func(c v1alpha1.GitSyncClusterStatus) bool { return c.Name == e.cluster.Name }) {
			names = append(names, list.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names, nil
}
