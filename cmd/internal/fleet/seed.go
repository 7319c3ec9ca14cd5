package fleet

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// IsSeed reports whether the cluster is a seed of the hub.
func (c *Cluster) IsSeed() bool { return c.seed }

// Seed returns the seed whose KubernetesCluster this is; nil if it is one of the hub.
func (c *Cluster) Seed() *Cluster { return c.via }

// HubOf returns the hub that drives the cluster: a seed drives itself and its clusters, and the hub that is
// given drives the others.
func (c *Cluster) HubOf(hub *Cluster) *Cluster {
	switch {
	case c.via != nil:
		return c.via
	case c.seed:
		return c
	default:
		return hub
	}
}

// withSeeds adds the clusters of each seed behind it, in one level, and of all seeds most at most, if that is not 0. A seed that
// does not answer stays as one cluster, which returns the error when it is used. For the clusters of one that refuses to list
// them, and for those that are too many, there is one that returns an error that says so.
func withSeeds(ctx context.Context, clusters []*Cluster, most int) []*Cluster {
	each := most
	if seeds := countSeeds(clusters); most > 0 && seeds > 0 {
		each = max(1, most/seeds)
	}
	behind := make([][]*Cluster, len(clusters))
	var group errgroup.Group
	group.SetLimit(secretReads)
	for i, cluster := range clusters {
		if !cluster.seed || cluster.invalid != nil {
			continue
		}
		group.Go(func() error {
			found, err := cluster.users(ctx, each)
			var answer apierrors.APIStatus
			switch {
			case errors.As(err, &answer): // it answers, and may be asked for something else
				found = []*Cluster{cluster.unread(err)}
			case err != nil:
				clusters[i] = newInvalid(cluster.Key, err)
				clusters[i].seed = true
			}
			behind[i] = found
			return nil
		})
	}
	_ = group.Wait() // the functions return no errors
	var all []*Cluster
	for i, cluster := range clusters {
		all = append(append(all, cluster), behind[i]...)
	}
	return all
}

func countSeeds(clusters []*Cluster) int {
	seeds := 0
	for _, cluster := range clusters {
		if cluster.seed {
			seeds++
		}
	}
	return seeds
}

// users returns the clusters of a seed, without the seed itself: the first ones if there are more than most, which is not 0, and
// one more that says how many there are.
func (c *Cluster) users(ctx context.Context, most int) ([]*Cluster, error) {
	count := 0
	_, others, err := c.list(ctx, func(*v1alpha1.KubernetesCluster) bool {
		count++
		return most == 0 || count <= most
	})
	if err == nil && most > 0 && count > most {
		others = append(others, c.unread(fmt.Errorf("%d more clusters of seed %s are not read here: of them, %d are", count-most, c.Name(), most)))
	}
	return others, err
}

// unread stands for clusters of a seed that are not known, for the reason in err.
func (c *Cluster) unread(err error) *Cluster {
	unknown := newInvalid(types.NamespacedName{Name: "*"}, err)
	unknown.via = c
	return unknown
}

// ClusterOf returns the cluster that a seed of the hub drives. An empty namespace of either means any, if
// there is only one of that name.
func (c *Cluster) ClusterOf(ctx context.Context, seed string, key types.NamespacedName) (*Cluster, error) {
	found, err := c.UserCluster(ctx, types.NamespacedName{Name: seed})
	if err != nil {
		return nil, err
	}
	if !found.seed {
		return nil, fmt.Errorf("KubernetesCluster %s is not a seed: it has no clusters of its own", found.Key)
	}
	return found.UserCluster(ctx, key)
}

// has reports whether the hub has a KubernetesCluster of that name.
func (c *Cluster) has(ctx context.Context, key types.NamespacedName) bool {
	conn, err := c.connect()
	return err == nil && conn.client.Get(ctx, key, &v1alpha1.KubernetesCluster{}) == nil
}

// Named returns the cluster that people call that: NAME or NAMESPACE/NAME of a KubernetesCluster of the hub,
// SEED/NAME or SEED/NAMESPACE/NAME of one of a seed. The hub's own come first.
func (c *Cluster) Named(ctx context.Context, parts []string) (*Cluster, error) {
	switch len(parts) {
	case 1:
		return c.UserCluster(ctx, types.NamespacedName{Name: parts[0]})
	case 2:
		key := types.NamespacedName{Namespace: parts[0], Name: parts[1]}
		if c.has(ctx, key) || !c.hasSeed(ctx, parts[0]) {
			return c.UserCluster(ctx, key)
		}
		return c.ClusterOf(ctx, parts[0], types.NamespacedName{Name: parts[1]})
	case 3:
		return c.ClusterOf(ctx, parts[0], types.NamespacedName{Namespace: parts[1], Name: parts[2]})
	default:
		return nil, fmt.Errorf("--cluster: write [NAMESPACE/]NAME, or SEED/[NAMESPACE/]NAME of a cluster of a seed")
	}
}

// hasSeed reports whether the hub has a seed of that name.
func (c *Cluster) hasSeed(ctx context.Context, name string) bool {
	conn, err := c.connect()
	if err != nil {
		return false
	}
	list := &v1alpha1.KubernetesClusterList{}
	if err := conn.client.List(ctx, list, client.MatchingFields{"metadata.name": name}); err != nil {
		return false
	}
	for i := range list.Items {
		if list.Items[i].IsSeed() {
			return true
		}
	}
	return false
}
