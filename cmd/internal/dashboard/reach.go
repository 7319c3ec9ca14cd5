package dashboard

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
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
//
// Tenants run these API servers, or name them in a Secret that they may write: the hub is a bounded one, so that what these send
// does not take the memory of the dashboard, nor lead it to another server.
type reach struct {
	hub *fleet.Cluster // as the dashboard, and bounded
	// namespace of the dashboard's own kubeconfigs; empty if there are none.
	namespace string
}

// as returns the hub as a user of these groups may use it, with its user clusters.
func (r *reach) as(name string, groups []string) *fleet.Cluster {
	hub := r.hub.As(name, groups...)
	return hub.WithKubeconfigs(func(ctx context.Context, k *v1alpha1.KubernetesCluster) (*rest.Config, error) {
		config, err := r.own(ctx, k)
		if err != nil {
			return nil, err
		}
		if config != nil {
			config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: groups}
			return config, nil
		}
		config, err = read(ctx, hub, k.Namespace, k.Spec.KubeconfigSecretRef)
		if apierrors.IsForbidden(err) {
			return nil, r.explain(err)
		}
		return config, err
	})
}

func (r *reach) explain(err error) error {
	way := "the dashboard was given none to act as you there"
	if r.namespace == "" {
		way = "the dashboard is not set up to act as its users in clusters (--kubeconfig-namespace)"
	}
	return fmt.Errorf("you may not read its kubeconfig in the hub, and %s: what the hub knows is on the page of the cluster. %w", way, err)
}

// own returns the dashboard's own kubeconfig of a cluster; nil if it has none.
func (r *reach) own(ctx context.Context, k *v1alpha1.KubernetesCluster) (*rest.Config, error) {
	if r.namespace == "" {
		return nil, nil
	}
	config, err := read(ctx, r.hub, r.namespace, &v1alpha1.SecretKeyReference{Name: k.Namespace + "." + k.Name, Key: "kubeconfig"})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return config, err
}

// read reads a kubeconfig in the hub.
func read(ctx context.Context, hub *fleet.Cluster, namespace string, ref *v1alpha1.SecretKeyReference) (*rest.Config, error) {
	c, err := hub.Client()
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, secret); err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", hub.Explain(err))
	}
	return fleet.ParseKubeconfig(secret, ref)
}
