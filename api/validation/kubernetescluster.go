package validation

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
)

// maxAgentValues is how long the values of spec.agent may be, as JSON: they are kept in every hub.
const maxAgentValues = 64 << 10

// ValidateKubernetesCluster returns what is wrong with the new KubernetesCluster, and whether it may
// follow old. What the kubeconfig may hold is checked where it is read.
func ValidateKubernetesCluster(obj, old *v1alpha1.KubernetesCluster) field.ErrorList {
	errs := validateMetadata(obj.ObjectMeta, namespaced)
	errs = append(errs, validateEnum(obj.Spec.Role, specPath.Child("role"), v1alpha1.ClusterRoleUser, v1alpha1.ClusterRoleSeed)...)
	if old != nil && obj.IsSeed() != old.IsSeed() {
		errs = append(errs, immutable(specPath.Child("role"), obj.Spec.Role, "delete and recreate the KubernetesCluster"))
	}
	if ref := obj.Spec.KubeconfigSecretRef; ref != nil {
		path := specPath.Child("kubeconfigSecretRef")
		errs = append(errs, validateObjectName(ref.Name, path.Child("name"))...)
		errs = append(errs, validateDataKey(ref.Key, path.Child("key"))...)
	}
	errs = append(errs, validateAgent(&obj.Spec)...)
	errs = append(errs, validateInitialInstallations(obj, old)...)
	return append(errs, validateEnum(obj.Spec.OnDelete, specPath.Child("onDelete"),
		v1alpha1.DeleteWait, v1alpha1.DeleteAbandon)...)
}

// validateAgent returns what is wrong with what is to be installed of Waybill itself. Whether the
// values fit the chart is checked where it is rendered.
func validateAgent(spec *v1alpha1.KubernetesClusterSpec) field.ErrorList {
	if spec.Agent == nil {
		return nil
	}
	path := specPath.Child("agent")
	var errs field.ErrorList
	if spec.KubeconfigSecretRef == nil {
		errs = append(errs, field.Forbidden(path, "needs kubeconfigSecretRef: the cluster that this object lives in has the chart of the hub itself"))
	}
	if spec.Role == v1alpha1.ClusterRoleSeed {
		errs = append(errs, field.Forbidden(path, "is for clusters with role User: a seed runs a chart of its own"))
	}
	values := path.Child("values")
	if invalid := validateValues(spec.Agent.Values, values); len(invalid) > 0 || spec.Agent.Values == nil {
		return append(errs, invalid...)
	}
	if len(spec.Agent.Values.Raw) > maxAgentValues {
		return append(errs, field.TooLong(values, "", maxAgentValues))
	}
	var set struct {
		Roles struct {
			Hub    any `json:"hub"`
			Driver any `json:"driver"`
		} `json:"roles"`
	}
	if err := json.Unmarshal(spec.Agent.Values.Raw, &set); err != nil {
		return append(errs, field.TypeInvalid(values.Child("roles"), field.OmitValueType{}, "must be a mapping of roles to true or false"))
	}
	for role, on := range map[string]any{"hub": set.Roles.Hub, "driver": set.Roles.Driver} {
		if on != nil && on != false {
			errs = append(errs, field.Forbidden(values.Child("roles", role), "is always false: a cluster that runs this role is a seed, with a chart of its own"))
		}
	}
	return errs
}

// KubernetesClusterWarnings returns what is allowed in a KubernetesCluster and unwise.
func KubernetesClusterWarnings(obj *v1alpha1.KubernetesCluster) []string {
	if obj.Spec.OnDelete != v1alpha1.DeleteAbandon {
		return nil
	}
	return []string{specPath.Child("onDelete").String() +
		" is Abandon: what Waybill delivered to the cluster stays there when this object is deleted"}
}
