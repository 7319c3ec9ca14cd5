package dashboard

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
)

// reach is how a dashboard in the hub gets into user clusters. It never uses what waybill-sync has got for itself:
//
//   - where an administrator has given the dashboard a kubeconfig of its own for a cluster, it impersonates the viewer
//     there, and does nothing else by it;
//   - else it reads the kubeconfig of the KubernetesCluster as the viewer. Who may read that Secret has its rights anyway;
//   - else there is no way, and pages have what the hub knows.
type reach struct {
	hub *fleet.Cluster // as the dashboard
	// namespace of the dashboard's own kubeconfigs; empty if there are none.
	namespace string
}

// cluster returns a user cluster of the hub, as a viewer may use it.
func (r *reach) cluster(ctx context.Context, v *viewer, key types.NamespacedName) (*fleet.Cluster, error) {
	if r.namespace != "" {
		found, err := r.asViewer(ctx, v, key)
		if found != nil || err != nil {
			return found, err
		}
	}
	found, err := v.hub.UserCluster(ctx, key)
	if !apierrors.IsForbidden(err) {
		return found, err
	}
	way := "You may not read its kubeconfig in the hub, and the dashboard was given none to act as you there"
	if r.namespace == "" {
		way = "You may not read its kubeconfig in the hub, and the dashboard is not set up to act as its users in clusters (--kubeconfig-namespace)"
	}
	return found, fmt.Errorf("%s: what the hub knows is on the page of the cluster. %w", way, err)
}

// asViewer returns a cluster by the dashboard's own kubeconfig; nil if it has none for it.
func (r *reach) asViewer(ctx context.Context, v *viewer, key types.NamespacedName) (*fleet.Cluster, error) {
	as, err := v.hub.Client()
	if err != nil {
		return nil, err
	}
	// Whether there is such a cluster is known only to those who may see it.
	k := &v1alpha1.KubernetesCluster{}
	if err := as.Get(ctx, key, k); err != nil {
		return nil, fmt.Errorf("read KubernetesCluster %s: %w", key, v.hub.Explain(err))
	}
	if k.Spec.KubeconfigSecretRef == nil {
		return nil, nil // it is the hub itself
	}
	own, err := r.hub.Client()
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{}
	err = own.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: key.Namespace + "." + key.Name}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the dashboard's kubeconfig of KubernetesCluster %s: %w", key, r.hub.Explain(err))
	}
	found, err := v.hub.UserClusterBy(k, secret)
	if err != nil {
		return nil, err
	}
	return found.As(v.name, v.groups...), nil
}
