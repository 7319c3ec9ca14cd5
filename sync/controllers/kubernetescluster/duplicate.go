package kubernetescluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "waybill.dev/waybill/api/v1alpha1"
)

// duplicateError keeps a cluster out that an older KubernetesCluster leads to already: its
// installations would be driven twice (C45).
type duplicateError struct {
	elder types.NamespacedName
}

func (e *duplicateError) Error() string {
	return fmt.Sprintf("KubernetesCluster %s is older and leads to the same cluster: delete one of the two", e.elder)
}

// guard is asked by the registry before a cluster is engaged.
func (r *Reconciler) guard(key types.NamespacedName, uid string) error {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	r.claims.put(key, uid)
	kc := &v1alpha1.KubernetesCluster{}
	if err := r.Client.Get(ctx, key, kc); err != nil {
		return err
	}
	kc.Status.UID = uid // it is not written yet, or it is that of a cluster from before
	elder, err := r.elder(ctx, kc)
	if err != nil {
		return err
	}
	if elder != nil {
		return &duplicateError{elder: *elder}
	}
	for _, other := range r.claims.of(uid) {
		if other != key {
			r.Clusters.Probe(other) // it may be the younger one
		}
	}
	return nil
}

// recheck has the guard decide anew where another KubernetesCluster of the same cluster has
// come or gone since.
func (r *Reconciler) recheck(ctx context.Context, s *scope) error {
	elder, err := r.elder(ctx, s.kc)
	if err != nil {
		return err
	}
	var duplicate *duplicateError
	if refused := errors.As(s.state.Err, &duplicate); refused != (elder != nil) {
		r.Clusters.Probe(s.key)
	}
	return nil
}

// readTimeout bounds a read from a cache that is synced.
const readTimeout = 10 * time.Second

// elder returns the oldest other KubernetesCluster that leads to the same cluster and is
// older; nil where there is none.
func (r *Reconciler) elder(ctx context.Context, kc *v1alpha1.KubernetesCluster) (*types.NamespacedName, error) {
	others, err := r.sameCluster(ctx, kc)
	if err != nil {
		return nil, err
	}
	var oldest *v1alpha1.KubernetesCluster
	for _, other := range others {
		if precedes(other, kc) && (oldest == nil || precedes(other, oldest)) {
			oldest = other
		}
	}
	if oldest == nil {
		return nil, nil
	}
	key := client.ObjectKeyFromObject(oldest)
	return &key, nil
}

// sameCluster returns the other KubernetesClusters that lead to the same cluster: by their
// status, which other processes write too, or by what this process has seen.
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

func precedes(a, b *v1alpha1.KubernetesCluster) bool {
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

// claims is which cluster each name led to at the last contact of this process.
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
