package validation

import (
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// Right is a permission that the writer of an object needs for what the object has Waybill do.
type Right struct {
	// AnyOf lists permissions, one of which is enough.
	AnyOf []authorizationv1.ResourceAttributes
	// Because says what the object does with it.
	Because string
}

func right(because string, permission authorizationv1.ResourceAttributes) Right {
	return Right{AnyOf: []authorizationv1.ResourceAttributes{permission}, Because: because}
}

// RightsToInstall returns the rights that the spec of an installation takes: admission asks for each of them in the name of
// who changes it. account is the ServiceAccount that the installation acts as; empty for none. What its snapshots take, which
// depends on other objects, is not among them.
//
// The right to install is one in the namespace of the installation, so that a RoleBinding there can grant it, too.
func RightsToInstall(obj *v1alpha1.ApplicationInstallation, account string) []Right {
	rights := []Right{right("spec.applicationRef installs it", authorizationv1.ResourceAttributes{
		Verb: "install", Group: v1alpha1.Group, Resource: "applicationdefinitions", Namespace: obj.Namespace, Name: obj.Spec.ApplicationRef.Name,
	})}
	if ns := obj.Spec.Namespace; ns != nil {
		rights = append(rights, rightsInTarget(ns, obj.Namespace)...)
	}
	for n, ref := range obj.Spec.ValuesFrom {
		resource := "secrets"
		if ref.Kind == "ConfigMap" {
			resource = "configmaps"
		}
		rights = append(rights, right(fmt.Sprintf("spec.valuesFrom[%d] names it", n), authorizationv1.ResourceAttributes{
			Verb: "get", Resource: resource, Namespace: obj.Namespace, Name: ref.Name,
		}))
	}
	for n, dependency := range obj.Spec.DependsOn { // its readiness shows in the status, and conditions read more of it
		key := dependency.GetKey(obj.Namespace)
		rights = append(rights, right(fmt.Sprintf("spec.dependsOn[%d] shows whether it is ready", n), authorizationv1.ResourceAttributes{
			Verb: "get", Group: v1alpha1.Group, Resource: "applicationinstallations", Namespace: key.Namespace, Name: key.Name,
		}))
	}
	if account != "" {
		rights = append(rights, Right{
			Because: "the installation acts as that ServiceAccount; permission to create pods there is enough",
			AnyOf: []authorizationv1.ResourceAttributes{
				{Verb: "impersonate", Resource: "serviceaccounts", Namespace: obj.Namespace, Name: account},
				{Verb: "create", Resource: "pods", Namespace: obj.Namespace},
			},
		})
	}
	return rights
}

// rightsInTarget returns rights in the target namespace, so that a Role there can grant them.
func rightsInTarget(ns *v1alpha1.TargetNamespace, own string) []Right {
	var rights []Right
	if ns.Name != own {
		rights = append(rights, right("spec.namespace differs from the installation's namespace", authorizationv1.ResourceAttributes{
			Verb: "install-into", Resource: "namespaces", Namespace: ns.Name, Name: ns.Name,
		}))
		if ns.Create {
			rights = append(rights, right("spec.namespace.create creates it", authorizationv1.ResourceAttributes{
				Verb: "create", Resource: "namespaces", Name: ns.Name,
			}))
		}
	}
	if len(ns.Labels)+len(ns.Annotations) > 0 {
		rights = append(rights, right("spec.namespace has labels or annotations", authorizationv1.ResourceAttributes{
			Verb: "patch", Resource: "namespaces", Namespace: ns.Name, Name: ns.Name,
		}))
	}
	return rights
}
