package webhooks

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

const gitSyncResource = "gitsyncs"

// gitSyncs are the rules of GitSync.
type gitSyncs struct {
	access          *access
	systemNamespace string
}

func (*gitSyncs) validate(obj, old *v1alpha1.GitSync) (admission.Warnings, field.ErrorList) {
	return validation.GitSyncWarnings(obj), validation.ValidateGitSync(obj, old)
}

func (*gitSyncs) specChanged(obj, old *v1alpha1.GitSync) bool {
	return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec)
}

func (g *gitSyncs) review(ctx context.Context, obj, _ *v1alpha1.GitSync) (admission.Warnings, error) {
	return nil, g.access.check(ctx, obj, gitSyncResource, g.needs(obj))
}

// needs returns the rights that a GitSync acts with, or passes on.
func (g *gitSyncs) needs(obj *v1alpha1.GitSync) []need {
	wanted := []need{g.needsAccount(obj)}
	if ref := obj.Spec.SecretRef; ref != nil {
		wanted = append(wanted, needsSecret("spec.secretRef", obj.Namespace, ref.Name))
	}
	if obj.Spec.ClusterSelector != nil {
		wanted = append(wanted, needs("spec.clusterSelector applies to clusters with full rights", authorizationv1.ResourceAttributes{
			Verb: verbUse, Group: v1alpha1.Group, Resource: kubernetesClusterResource, Namespace: obj.Namespace,
		}))
	}
	return wanted
}

// needsAccount returns the right to act as the ServiceAccount that the GitSync acts as. Users who
// may create Pods in the namespace may do that anyway. In the system namespace an empty account
// stands for Waybill's own, one of many there.
func (g *gitSyncs) needsAccount(obj *v1alpha1.GitSync) need {
	account := obj.Spec.ServiceAccountName
	if account == "" && obj.Namespace != g.systemNamespace {
		account = "default"
	}
	return needsToActAs(obj.Namespace, account, "it acts as that ServiceAccount; permission to create pods there is enough")
}

// needsToActAs returns the right to act as a ServiceAccount; an empty name stands for any of the
// namespace.
func needsToActAs(namespace, account, because string) need {
	return need{
		because: because,
		anyOf: []authorizationv1.ResourceAttributes{
			{Verb: "impersonate", Resource: "serviceaccounts", Namespace: namespace, Name: account},
			{Verb: "create", Resource: "pods", Namespace: namespace},
		},
	}
}

// needsSecret returns the right to read a Secret that a field names.
func needsSecret(path, namespace, name string) need {
	return needs(path+" names it", authorizationv1.ResourceAttributes{
		Verb: "get", Resource: "secrets", Namespace: namespace, Name: name,
	})
}
