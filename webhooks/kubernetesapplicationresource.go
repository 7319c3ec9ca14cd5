package webhooks

import (
	"context"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

const kubernetesApplicationResourceResource = "kubernetesapplicationresources"

// kubernetesApplicationResources are the rules of KubernetesApplicationResource. Most of these
// objects are written by our own controller, which holds the permissions that are checked.
type kubernetesApplicationResources struct {
	access  *access
	secrets *propagation
}

var _ entry = &kubernetesApplicationResources{}

// entryNeeds implements entry.
func (*kubernetesApplicationResources) entryNeeds(namespace string) (resource string, wanted []need) {
	return kubernetesApplicationResourceResource, []need{needsUse("it is applied to a cluster with full rights", namespace)}
}

func (*kubernetesApplicationResources) validate(obj, old *v1alpha1.KubernetesApplicationResource) (admission.Warnings, field.ErrorList) {
	return nil, validation.ValidateKubernetesApplicationResource(obj, old)
}

// specChanged also returns true if the resource may now adopt an object that it could not before.
func (*kubernetesApplicationResources) specChanged(obj, old *v1alpha1.KubernetesApplicationResource) bool {
	return obj.Annotations[v1alpha1.AdoptAnnotation] != old.Annotations[v1alpha1.AdoptAnnotation] ||
		!apiequality.Semantic.DeepEqual(obj.Spec, old.Spec)
}

func (k *kubernetesApplicationResources) review(ctx context.Context, obj, old *v1alpha1.KubernetesApplicationResource) (admission.Warnings, error) {
	var named []namedSecret
	if old == nil || !apiequality.Semantic.DeepEqual(obj.Spec.Secrets, old.Spec.Secrets) {
		for i, s := range obj.Spec.Secrets {
			named = append(named, namedSecret{name: s.Name, path: field.NewPath("spec", "secrets").Index(i)})
		}
	}
	_, wanted := k.entryNeeds(obj.Namespace)
	for _, s := range named {
		wanted = append(wanted, needsSecret(s.path.String(), obj.Namespace, s.name))
	}
	if err := k.access.check(ctx, obj, kubernetesApplicationResourceResource, wanted); err != nil {
		return nil, err
	}
	return nil, k.secrets.check(ctx, obj, v1alpha1.KubernetesApplicationResourceKind, named)
}
