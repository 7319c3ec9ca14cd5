package applicationdefinition

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
)

// engage starts to copy to a cluster; that ends when the cluster is disengaged. The hub gets no
// copies of its own definitions, no matter how it is reached.
func (r *Reconciler) engage(ctx context.Context, c *cluster.Cluster) error {
	if c.UID() == r.Clusters.Local().UID() {
		r.wakeAll(ctx)
		return nil
	}
	made := newCopier(r, c)
	r.copiers.Put(ctx, c.Name(), made)
	context.AfterFunc(ctx, func() { r.wakeAll(context.WithoutCancel(ctx)) })
	go made.Run(ctx)
	return nil
}

// offeredTo returns what a cluster gets of a definition; nil if the cluster should have no copy.
// skip is true if nothing should be done in the cluster at all: it is being deleted, and the
// controller that deletes it also deletes the copies.
func (r *Reconciler) offeredTo(ctx context.Context, name string, key types.NamespacedName) (offered *form, skip bool, err error) {
	kc := &v1alpha1.KubernetesCluster{}
	err = r.Client.Get(ctx, key, kc, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && !kc.DeletionTimestamp.IsZero() {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("get cluster: %w", err)
	}
	definition := &v1alpha1.ApplicationDefinition{}
	err = r.Client.Get(ctx, client.ObjectKey{Name: name}, definition, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) || err == nil && !definition.InCatalog() {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("get definition: %w", err)
	}
	o, err := r.offers.of(definition, r.HubID)
	if err != nil {
		return nil, true, nil // its status says so; until it is corrected, copies stay as they are
	}
	return o.to(kc), false, nil
}

// names returns the names of all definitions of the hub.
func (r *Reconciler) names(ctx context.Context) ([]string, error) {
	list := &v1alpha1.ApplicationDefinitionList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list definitions: %w", err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}

// look enqueues the copies of a definition, in every cluster.
func (r *Reconciler) look(name string) {
	for _, c := range r.copiers.All() {
		c.Add(name)
	}
}
