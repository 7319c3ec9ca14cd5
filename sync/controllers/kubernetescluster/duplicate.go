package kubernetescluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// Several KubernetesClusters may lead to one cluster, for teams that deliver to it from their own
// namespaces and with their own rights. The first of them drives it (C45): it brings CRDs and
// copies of definitions, and its installations are installed. The others can be delivered to, and
// no more. One in the system namespace precedes all others, so that no team takes a cluster from
// those who run Waybill; otherwise the oldest comes first.

// yieldError keeps a KubernetesCluster from driving its cluster.
type yieldError struct {
	first types.NamespacedName
}

func (e *yieldError) Error() string {
	return fmt.Sprintf("KubernetesCluster %s leads to the same cluster and comes first", e.first)
}

// guard is the Guard of the registry: it returns an error if a KubernetesCluster must not drive its
// cluster.
func (r *Reconciler) guard(key types.NamespacedName, uid string) error {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	r.claims.put(key, uid)
	kc := &v1alpha1.KubernetesCluster{}
	if err := r.Client.Get(ctx, key, kc); err != nil {
		return err
	}
	kc.Status.UID = uid // it is not written yet, or is that of an earlier cluster
	first, err := r.first(ctx, kc)
	if err != nil {
		return err
	}
	if first != nil {
		return &yieldError{first: *first}
	}
	for _, other := range r.claims.of(uid) {
		if state, ok := r.Clusters.State(other); ok && other != key && state.Engaged && state.Yields == nil {
			r.Clusters.Probe(other) // it comes after us, but does not know about us yet
		}
	}
	return nil
}

// recheck makes the registry call guard again if another KubernetesCluster of the same cluster has
// come or gone since.
func (r *Reconciler) recheck(ctx context.Context, s *scope) error {
	first, err := r.first(ctx, s.kc)
	if err != nil {
		return err
	}
	if s.state.Engaged && (s.state.Yields != nil) != (first != nil) {
		r.Clusters.Probe(s.key)
	}
	return nil
}

// readTimeout bounds a read from a cache that is synced.
const readTimeout = 10 * time.Second

// first returns the KubernetesCluster that precedes all others that lead to the same cluster; nil
// if that is kc itself.
func (r *Reconciler) first(ctx context.Context, kc *v1alpha1.KubernetesCluster) (*types.NamespacedName, error) {
	others, err := r.sameCluster(ctx, kc)
	if err != nil {
		return nil, err
	}
	first := kc
	for _, other := range others {
		if r.precedes(other, first) {
			first = other
		}
	}
	if first == kc {
		return nil, nil
	}
	key := client.ObjectKeyFromObject(first)
	return &key, nil
}

// sameCluster returns the other KubernetesClusters that lead to the same cluster, according to
// their status, which other processes write as well, or to what this process has seen.
func (r *Reconciler) sameCluster(ctx context.Context, kc *v1alpha1.KubernetesCluster) ([]*v1alpha1.KubernetesCluster, error) {
	if kc.Status.UID == "" {
		return nil, nil
	}
	self, uid := client.ObjectKeyFromObject(kc), kc.Status.UID
	listed := &v1alpha1.KubernetesClusterList{}
	if err := r.Client.List(ctx, listed, client.MatchingFields{uidIndex: uid}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list clusters of UID %s: %w", uid, err)
	}
	var others []*v1alpha1.KubernetesCluster
	seen := map[types.NamespacedName]bool{self: true}
	for i := range listed.Items {
		key := client.ObjectKeyFromObject(&listed.Items[i])
		if claimed, ok := r.claims.get(key); seen[key] || ok && claimed != uid {
			continue // its status is behind
		}
		seen[key] = true
		others = append(others, &listed.Items[i])
	}
	for _, key := range r.claims.of(uid) {
		other := &v1alpha1.KubernetesCluster{}
		if seen[key] || r.Client.Get(ctx, key, other) != nil {
			continue
		}
		others = append(others, other)
	}
	return others, nil
}

func (r *Reconciler) precedes(a, b *v1alpha1.KubernetesCluster) bool {
	if platform := a.Namespace == r.SystemNamespace; platform != (b.Namespace == r.SystemNamespace) {
		return platform
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return client.ObjectKeyFromObject(a).String() < client.ObjectKeyFromObject(b).String()
}

// twins returns the requests for the other KubernetesClusters of the same cluster.
func (r *Reconciler) twins(ctx context.Context, o client.Object) []ctrl.Request {
	others, err := r.sameCluster(ctx, o.(*v1alpha1.KubernetesCluster))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find KubernetesClusters of one cluster")
		return nil
	}
	requests := make([]ctrl.Request, 0, len(others))
	for _, other := range others {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(other)})
	}
	return requests
}

// claims holds the cluster that each name led to at the last contact by this process.
type claims struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]string
}

func (c *claims) put(key types.NamespacedName, uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = map[types.NamespacedName]string{}
	}
	c.byKey[key] = uid
}

func (c *claims) get(key types.NamespacedName) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	uid, ok := c.byKey[key]
	return uid, ok
}

func (c *claims) of(uid string) []types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	var keys []types.NamespacedName
	for key, claimed := range c.byKey {
		if claimed == uid {
			keys = append(keys, key)
		}
	}
	return keys
}

func (c *claims) forget(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byKey, key)
}
