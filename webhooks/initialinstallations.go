package webhooks

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
)

// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get

// asked is what a KubernetesCluster asks to be installed in its cluster, and did not ask for before.
type asked struct {
	entries []validation.InitialInstallation
	// path is where the entries are, as far as an error can say.
	path *field.Path
}

// asked returns the installations that the object newly asks for: entries that were added to the
// annotation, and the list that spec.installationsFrom names if it named another one before, as it is now.
func (k *kubernetesClusters) asked(ctx context.Context, obj, old *v1alpha1.KubernetesCluster) ([]asked, admission.Warnings, error) {
	added, err := validation.AddedInitialInstallations(obj, old)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error()) // validate has said so already
	}
	var all []asked
	var warnings admission.Warnings
	if len(added) > 0 {
		all = append(all, asked{entries: added, path: validation.InitialInstallationsPath()})
	}
	if !namesAnotherList(obj, old) {
		return all, warnings, nil
	}
	from, path := obj.Spec.InstallationsFrom, field.NewPath("spec", "installationsFrom")
	entries, missing, err := k.listed(ctx, obj)
	switch {
	case err != nil:
		return nil, nil, err
	case missing != "" && !delivered(ctx):
		return nil, nil, invalidCluster(obj, field.ErrorList{field.Invalid(path, from.Name, missing)})
	case missing != "":
		return append(all, asked{path: path}), append(warnings, path.String()+": "+missing+": the list is waited for"), nil
	}
	return append(all, asked{entries: entries, path: path}), warnings, nil
}

// namesAnotherList reports whether spec.installationsFrom names a list that it did not name before.
func namesAnotherList(obj, old *v1alpha1.KubernetesCluster) bool {
	from := obj.Spec.InstallationsFrom
	return from != nil && (old == nil || old.Spec.InstallationsFrom == nil || *old.Spec.InstallationsFrom != *from)
}

func invalidCluster(obj *v1alpha1.KubernetesCluster, errs field.ErrorList) error {
	return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(v1alpha1.KubernetesClusterKind).GroupKind(), obj.Name, errs)
}

// listed returns the entries of the list that spec.installationsFrom names, or why there is none.
func (k *kubernetesClusters) listed(ctx context.Context, obj *v1alpha1.KubernetesCluster) (_ []validation.InitialInstallation, missing string, _ error) {
	from, found := obj.Spec.InstallationsFrom, &corev1.ConfigMap{}
	err := k.live.Get(ctx, client.ObjectKey{Namespace: obj.Namespace, Name: from.Name}, found)
	text, has := found.Data[from.GetKey()]
	switch {
	case apierrors.IsNotFound(err):
		return nil, "there is no such ConfigMap in the namespace", nil
	case err != nil:
		return nil, "", apierrors.NewServiceUnavailable("cannot read the ConfigMap of spec.installationsFrom, try again: " + err.Error())
	case found.Labels[v1alpha1.ValuesLabel] != v1alpha1.ValuesProtected:
		return nil, "the ConfigMap lacks the label " + v1alpha1.ValuesLabel + ": " + v1alpha1.ValuesProtected, nil
	case !has:
		return nil, fmt.Sprintf("the ConfigMap has no key %q", from.GetKey()), nil
	}
	path := field.NewPath("data").Key(from.GetKey())
	entries, err := validation.InitialInstallations(text, path)
	if err != nil {
		return nil, fmt.Sprintf("key %q of the ConfigMap %v", from.GetKey(), err), nil
	}
	for i := range entries {
		if errs := entries[i].Errors; len(errs) > 0 {
			return nil, "the ConfigMap is not valid: " + errs.ToAggregate().Error(), nil
		}
	}
	return entries, "", nil
}

// needsInstallations returns the rights to install what is asked for with the rights of the kubeconfig. A list
// that is not known yet may name any definition.
func needsInstallations(namespace string, all []asked) []need {
	var wanted []need
	for _, a := range all {
		wanted = append(wanted, needs(a.path.String()+" installs in the cluster, with full rights in it", usesClusters(namespace)))
		if len(a.entries) == 0 {
			wanted = append(wanted, needs(a.path.String()+" may install any definition", installs(namespace, "")))
		}
		for i := range a.entries {
			if o := a.entries[i].Object; o != nil {
				wanted = append(wanted, needs(a.path.String()+" installs it", installs(namespace, o.Spec.ApplicationRef.Name)))
			}
		}
	}
	return wanted
}

// needsList returns the rights that a KubernetesCluster takes which names a list of installations, whatever is in it.
func needsList(namespace, configMap string) []need {
	return []need{
		needs("spec.installationsFrom names it", authorizationv1.ResourceAttributes{
			Verb: "get", Resource: "configmaps", Namespace: namespace, Name: configMap,
		}),
		needs("spec.installationsFrom installs in the cluster, with full rights in it", usesClusters(namespace)),
	}
}

// usesClusters is the right to use the clusters of a namespace; of all, if that is empty.
func usesClusters(namespace string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Verb: verbUse, Group: v1alpha1.Group, Resource: kubernetesClusterResource, Namespace: namespace}
}

// reviewReferences checks the definitions and versions that are asked for. What a GitSync delivers may arrive
// before the definition does.
func (k *kubernetesClusters) reviewReferences(ctx context.Context, obj *v1alpha1.KubernetesCluster, all []asked) (admission.Warnings, error) {
	var errs field.ErrorList
	for _, a := range all {
		for i := range a.entries {
			o := a.entries[i].Object
			if o == nil {
				continue
			}
			def, err := k.definitions.get(ctx, o.Spec.ApplicationRef.Name, o.Spec.ApplicationRef.Version)
			if err != nil {
				return nil, apierrors.NewServiceUnavailable("cannot look up the definition, try again: " + err.Error())
			}
			if problem := validation.ValidateInitialReference(o, def, obj); problem != nil {
				errs = append(errs, field.Invalid(a.path, a.entries[i].Name, problem.Error()))
			}
		}
	}
	if len(errs) == 0 {
		return nil, nil
	}
	if delivered(ctx) {
		return admission.Warnings{errs.ToAggregate().Error() + ": the installations wait until that changes"}, nil
	}
	return nil, invalidCluster(obj, errs)
}

// namesList reports whether a KubernetesCluster of the namespace takes its list of installations from a ConfigMap.
// In a cluster without the kind, none does.
func namesList(ctx context.Context, live client.Reader, namespace, configMap string) (bool, error) {
	options := []client.ListOption{client.InNamespace(namespace), client.Limit(pageSize), client.Continue("")}
	for {
		list := &v1alpha1.KubernetesClusterList{}
		err := live.List(ctx, list, options...)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if from := list.Items[i].Spec.InstallationsFrom; from != nil && from.Name == configMap {
				return true, nil
			}
		}
		if list.Continue == "" {
			return false, nil
		}
		options[2] = client.Continue(list.Continue)
	}
}
