package kubernetescluster

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/keyed"
)

// claim is the cluster that a KubernetesCluster is bound to, as guard decided it. The status says
// the same as soon as it is written.
type claim struct {
	// of is the UID of the KubernetesCluster, which distinguishes it from another of its name.
	of types.UID
	// uid is that of the cluster, store says which of the clusters of that UID it is, and at is since
	// when it is bound to it.
	uid, store string
	at         metav1.MicroTime
}

// claims holds the claim of each name.
type claims struct {
	byKey keyed.Map[types.NamespacedName, claim]
}

// put binds a KubernetesCluster to a cluster. If its status says that it is already, the time is
// that of the status.
func (c *claims) put(kc *v1alpha1.KubernetesCluster, uid, store string) {
	added := claim{of: kc.UID, uid: uid, store: store, at: metav1.NewMicroTime(time.Now().Truncate(time.Microsecond))}
	if kc.Status.UID == uid {
		added.at = since(kc)
	}
	c.byKey.Put(client.ObjectKeyFromObject(kc), added)
}

// get returns the claim of a KubernetesCluster.
func (c *claims) get(kc *v1alpha1.KubernetesCluster) (claim, bool) {
	found, ok := c.byKey.Lookup(client.ObjectKeyFromObject(kc))
	return found, ok && found.of == kc.UID
}

// bound returns the UID of the cluster that a KubernetesCluster is bound to; empty if it is to none
// yet.
func (c *claims) bound(kc *v1alpha1.KubernetesCluster) string {
	uid, _ := c.boundTo(kc)
	return uid
}

// boundTo is bound, and returns as well which of the clusters of that UID it is.
func (c *claims) boundTo(kc *v1alpha1.KubernetesCluster) (uid, store string) {
	if found, ok := c.get(kc); ok {
		return found.uid, found.store
	}
	return kc.Status.UID, kc.Status.Store
}

// since returns when a KubernetesCluster was bound to a cluster: now, if it is not bound to that one.
func (c *claims) since(kc *v1alpha1.KubernetesCluster, uid string) metav1.MicroTime {
	if kc.Status.UID == uid {
		return since(kc)
	}
	if found, ok := c.get(kc); ok && found.uid == uid {
		return found.at
	}
	return metav1.NowMicro()
}

// since returns the time in the status. An earlier version wrote none.
func since(kc *v1alpha1.KubernetesCluster) metav1.MicroTime {
	if at := kc.Status.BoundAt; at != nil {
		return *at
	}
	return metav1.NewMicroTime(kc.CreationTimestamp.Time)
}

// of returns the names that are bound to a cluster.
func (c *claims) of(uid string) []types.NamespacedName {
	var keys []types.NamespacedName
	for key, claimed := range c.byKey.All() {
		if claimed.uid == uid {
			keys = append(keys, key)
		}
	}
	return keys
}

func (c *claims) forget(key types.NamespacedName) { c.byKey.Drop(key) }
