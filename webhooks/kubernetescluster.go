package webhooks

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

const kubernetesClusterResource = "kubernetesclusters"

// kubernetesClusters are the rules of KubernetesCluster.
type kubernetesClusters struct {
	access          *access
	definitions     *definitions
	systemNamespace string
	// live reads ConfigMaps, past any cache.
	live client.Reader
}

func (k *kubernetesClusters) validate(obj, old *v1alpha1.KubernetesCluster) (admission.Warnings, field.ErrorList) {
	errs := validation.ValidateKubernetesCluster(obj, old)
	if obj.IsSeed() && obj.Namespace != k.systemNamespace {
		errs = append(errs, field.Invalid(field.NewPath("spec", "role"), obj.Spec.Role,
			"is allowed in namespace "+k.systemNamespace+" only: a seed gets the catalog with all its credentials"))
	}
	return validation.KubernetesClusterWarnings(obj), errs
}

func (*kubernetesClusters) specChanged(obj, old *v1alpha1.KubernetesCluster) bool {
	const list = v1alpha1.InitialInstallationsAnnotation
	return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec) || obj.Annotations[list] != old.Annotations[list]
}

func (k *kubernetesClusters) review(ctx context.Context, obj, old *v1alpha1.KubernetesCluster) (admission.Warnings, error) {
	var wanted []need
	if old == nil || !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec) {
		wanted = k.needs(obj)
	}
	if namesAnotherList(obj, old) {
		wanted = append(wanted, needsList(obj.Namespace, obj.Spec.InstallationsFrom.Name)...)
		if err := k.access.check(ctx, obj, kubernetesClusterResource, wanted); err != nil {
			return nil, err // a user who may not read the list must not learn what is in it
		}
	}
	asked, warnings, err := k.asked(ctx, obj, old)
	if err != nil {
		return nil, err
	}
	wanted = append(wanted, needsInstallations(obj.Namespace, asked)...)
	if err := k.access.check(ctx, obj, kubernetesClusterResource, distinct(wanted)); err != nil {
		return nil, err
	}
	more, err := k.reviewReferences(ctx, obj, asked)
	return append(warnings, more...), err
}

// needs returns the rights that a user who may `use` the cluster gets through it: those of the
// kubeconfig or, without one, Waybill's own in this very cluster, in any namespace. A seed gets the
// credentials of all sources.
func (k *kubernetesClusters) needs(obj *v1alpha1.KubernetesCluster) []need {
	wanted := k.needsToReach(obj)
	if obj.IsSeed() {
		wanted = append(wanted, needs("spec.role is Seed, which gets the source credentials", authorizationv1.ResourceAttributes{
			Verb: "get", Resource: "secrets", Namespace: k.systemNamespace,
		}))
	}
	return wanted
}

func (*kubernetesClusters) needsToReach(obj *v1alpha1.KubernetesCluster) []need {
	if ref := obj.Spec.KubeconfigSecretRef; ref != nil {
		return []need{needsSecret("spec.kubeconfigSecretRef", obj.Namespace, ref.Name)}
	}
	return []need{needs("without kubeconfigSecretRef it is this cluster, with full rights in it",
		authorizationv1.ResourceAttributes{Verb: "*", Group: "*", Resource: "*"})}
}
