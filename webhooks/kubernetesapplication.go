package webhooks

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

const kubernetesApplicationResource = "kubernetesapplications"

// kubernetesApplications are the rules and the defaults of KubernetesApplication.
type kubernetesApplications struct {
	access  *access
	secrets *propagation
	// remote tries templates out in user clusters; nil if that is not wanted.
	remote *remoteDryRun
}

var (
	_ defaults[*v1alpha1.KubernetesApplication] = &kubernetesApplications{}
	_ entry                                     = &kubernetesApplications{}
)

// entryNeeds implements entry.
func (*kubernetesApplications) entryNeeds(namespace string) (resource string, wanted []need) {
	return kubernetesApplicationResource, []need{needsUse("it is applied to a cluster with full rights", namespace)}
}

func (*kubernetesApplications) fill(_ context.Context, obj, old *v1alpha1.KubernetesApplication) error {
	validation.DefaultKubernetesApplication(obj, old)
	return nil
}

func (*kubernetesApplications) validate(obj, old *v1alpha1.KubernetesApplication) (admission.Warnings, field.ErrorList) {
	return validation.KubernetesApplicationWarnings(obj, old), validation.ValidateKubernetesApplication(obj, old)
}

func (*kubernetesApplications) specChanged(obj, old *v1alpha1.KubernetesApplication) bool {
	return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec)
}

func (k *kubernetesApplications) review(ctx context.Context, obj, old *v1alpha1.KubernetesApplication) (admission.Warnings, error) {
	var named []namedSecret
	if old == nil || !apiequality.Semantic.DeepEqual(obj.Spec.ResourceTemplates, old.Spec.ResourceTemplates) {
		named = templateSecrets(obj)
	}
	_, wanted := k.entryNeeds(obj.Namespace)
	for _, s := range named {
		wanted = append(wanted, needsSecret(s.path.String(), obj.Namespace, s.name))
	}
	if err := k.access.check(ctx, obj, kubernetesApplicationResource, wanted); err != nil {
		return nil, err
	}
	if err := k.secrets.check(ctx, obj, v1alpha1.KubernetesApplicationKind, named); err != nil {
		return nil, err
	}
	return k.remote.try(ctx, obj, old), nil
}

// templateSecrets returns the Secrets that the templates name, each once, with the path of its
// first mention.
func templateSecrets(obj *v1alpha1.KubernetesApplication) []namedSecret {
	var named []namedSecret
	seen := map[string]bool{}
	for i, t := range obj.Spec.ResourceTemplates {
		for j, s := range t.Spec.Secrets {
			if !seen[s.Name] {
				seen[s.Name] = true
				path := field.NewPath("spec", "resourceTemplates").Index(i).Child("spec", "secrets").Index(j)
				named = append(named, namedSecret{name: s.Name, path: path})
			}
		}
	}
	return named
}

// needsUse returns the right to use every cluster of a namespace, with full rights there.
func needsUse(because, namespace string) need {
	return needs(because, authorizationv1.ResourceAttributes{
		Verb: verbUse, Group: v1alpha1.Group, Resource: kubernetesClusterResource, Namespace: namespace,
	})
}

// namedSecret is a Secret that a field names.
type namedSecret struct {
	name string
	path *field.Path
}

func (n namedSecret) refuse(cluster string) *field.Error {
	return field.Forbidden(n.path, fmt.Sprintf(
		"Secret %q holds the kubeconfig of KubernetesCluster %q: it never leaves the hub", n.name, cluster))
}
