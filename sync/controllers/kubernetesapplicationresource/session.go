package kubernetesapplicationresource

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/delivery"
	"waybill.dev/waybill/sync/reconcile"
)

// session is what is remembered of a resource between passes.
type session struct {
	key reconcile.Key
	// delivery keeps the object and the copies of its Secrets in the cluster.
	delivery *delivery.Delivery
	// placed says that a job has applied the object with all of its Secrets, and namespace where that is.
	placed    bool
	namespace string
	// shownAt is when a changed status of the object was last shown.
	shownAt time.Time
}

// session returns what is remembered of a resource, but nothing of an earlier one of its name.
func (r *Reconciler) session(kar *v1alpha1.KubernetesApplicationResource) *session {
	key := reconcile.KeyOf(kar)
	if found := r.sessions.Get(key.NamespacedName); found != nil && found.key != key {
		r.forget(key.NamespacedName)
	}
	return r.sessions.Of(key.NamespacedName, func() *session {
		return &session{key: key, delivery: r.deliveries.New(r.owner(key.NamespacedName))}
	})
}

// forget drops everything that is remembered of a resource. What it delivered stays.
func (r *Reconciler) forget(name types.NamespacedName) {
	found := r.sessions.Get(name)
	if found == nil {
		return
	}
	found.delivery.Forget()
	r.kernel.Forget(found.key.UID)
	r.sessions.Drop(name)
	forgetMetrics(name)
}

// owner returns what delivered objects are marked with.
func (r *Reconciler) owner(name types.NamespacedName) apply.Owner {
	return apply.Owner{HubID: r.HubID, Kind: v1alpha1.KubernetesApplicationResourceKind, Namespace: name.Namespace, Name: name.Name}
}
