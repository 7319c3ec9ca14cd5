package validate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
	"waybill.dev/waybill/cmd/internal/manifests"
	"waybill.dev/waybill/sync/manifest"
)

// checkCluster looks up the definitions that a KubernetesCluster asks for among the files. If they do not
// hold one, nothing is said about it: it may be in the hub.
func checkCluster(o *v1alpha1.KubernetesCluster, known catalog) (field.ErrorList, []string) {
	path := validation.InitialInstallationsPath()
	errs := validation.ValidateKubernetesCluster(o, nil)
	if entries, err := validation.AddedInitialInstallations(o, nil); err == nil {
		errs = append(errs, checkReferences(entries, o, known, path)...)
	}
	return errs, validation.KubernetesClusterWarnings(o)
}

func checkReferences(entries []validation.InitialInstallation, kc *v1alpha1.KubernetesCluster, known catalog, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range entries {
		if entries[i].Object == nil {
			continue
		}
		definition := known.definitions[entries[i].Object.Spec.ApplicationRef.Name]
		if definition == nil {
			continue
		}
		if err := validation.ValidateInitialReference(entries[i].Object, definition, kc); err != nil {
			errs = append(errs, field.Invalid(path.Index(i), entries[i].Name, err.Error()))
		}
	}
	return errs
}

// lists checks the lists of installations that KubernetesClusters take from ConfigMaps among the files.
func (r *report) lists(set *manifests.Set, known catalog) {
	configMaps := map[string]manifest.Object{}
	for _, object := range set.Objects {
		if object.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("ConfigMap") {
			configMaps[object.GetNamespace()+"/"+object.GetName()] = object
		}
	}
	for _, object := range set.Objects {
		if object.GroupVersionKind() != v1alpha1.GroupVersion.WithKind(v1alpha1.KubernetesClusterKind) {
			continue
		}
		kc, err := decode[v1alpha1.KubernetesCluster](object.Unstructured)
		if err != nil || kc.Spec.InstallationsFrom == nil {
			continue
		}
		from, found := configMaps[kc.Namespace+"/"+kc.Spec.InstallationsFrom.Name]
		if !found {
			continue // it may be in the hub
		}
		for _, e := range checkList(from, kc, known) {
			r.Findings = append(r.Findings, finding{
				File: from.File, Line: set.Line(from, e.Field), Kind: from.GetKind(), Namespace: from.GetNamespace(), Name: from.GetName(),
				Field: e.Field, Severity: severityError, Message: e.ErrorBody(),
			})
		}
	}
}

// checkList returns what is wrong with the list that a KubernetesCluster takes from a ConfigMap.
func checkList(from manifest.Object, kc *v1alpha1.KubernetesCluster, known catalog) field.ErrorList {
	var errs field.ErrorList
	configMap, err := decode[corev1.ConfigMap](from.Unstructured)
	if err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("data"), field.OmitValueType{}, err.Error())}
	}
	if configMap.Labels[v1alpha1.ValuesLabel] != v1alpha1.ValuesProtected {
		errs = append(errs, field.Required(field.NewPath("metadata", "labels").Key(v1alpha1.ValuesLabel),
			fmt.Sprintf("KubernetesCluster %s takes installations from it: must be %s", kc.Name, v1alpha1.ValuesProtected)))
	}
	key := kc.Spec.InstallationsFrom.GetKey()
	path := field.NewPath("data").Key(key)
	text, has := configMap.Data[key]
	if !has {
		return append(errs, field.Required(path, "KubernetesCluster "+kc.Name+" takes installations from it"))
	}
	entries, err := validation.InitialInstallations(text, path)
	if err != nil {
		return append(errs, field.Invalid(path, field.OmitValueType{}, err.Error()))
	}
	for i := range entries {
		errs = append(errs, entries[i].Errors...)
	}
	return append(errs, checkReferences(entries, kc, known, path)...)
}
