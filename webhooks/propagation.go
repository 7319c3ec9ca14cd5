package webhooks

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// +kubebuilder:rbac:groups=apps.waybill.dev,resources=kubernetesclusters,verbs=list

// propagation checks which Secrets may be copied into user clusters. The controller refuses
// those with the annotation secret-type: admission reads no Secrets.
type propagation struct {
	reader client.Reader
}

// check refuses Secrets that hold the kubeconfig of a cluster.
func (p *propagation) check(ctx context.Context, obj client.Object, kind string, named []namedSecret) error {
	if len(named) == 0 {
		return nil
	}
	clusters := &v1alpha1.KubernetesClusterList{}
	err := p.reader.List(ctx, clusters, client.InNamespace(obj.GetNamespace()))
	if meta.IsNoMatchError(err) {
		return nil // without the kind there is no such Secret
	}
	if err != nil {
		return apierrors.NewServiceUnavailable("cannot look up which Secrets belong to clusters, try again: " + err.Error())
	}
	users := map[string]string{}
	for i := range clusters.Items {
		if ref := clusters.Items[i].Spec.KubeconfigSecretRef; ref != nil {
			users[ref.Name] = clusters.Items[i].Name
		}
	}
	var errs field.ErrorList
	for _, n := range named {
		if cluster, used := users[n.name]; used {
			errs = append(errs, n.refuse(cluster))
		}
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(kind).GroupKind(), obj.GetName(), errs)
	}
	return nil
}
