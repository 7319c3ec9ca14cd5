package restore

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// StorageClassError means that the cluster has no StorageClass for a claim.
type StorageClassError struct{ message string }

// Error says which is missing, and what to do.
func (e StorageClassError) Error() string { return e.message }

func noStorageClass(format string, args ...any) error {
	return StorageClassError{fmt.Sprintf(format, args...)}
}

// mapStorageClasses gives claims, and the templates of claims, another StorageClass if the cluster
// does not have theirs.
func mapStorageClasses(objects []*object, o Options) error {
	for _, obj := range objects {
		var claims []map[string]any
		switch {
		case obj.isClaim():
			claims = []map[string]any{obj.Object}
		case obj.is(statefulSetKind):
			claims = claimTemplates(obj.Unstructured)
		}
		for _, claim := range claims {
			if err := o.mapClaim(claim); err != nil {
				return fmt.Errorf("%s: %w", obj, err)
			}
		}
	}
	return nil
}

// mapClaim changes one claim. One without a StorageClass stays as it is.
func (o Options) mapClaim(claim map[string]any) error {
	class, _, _ := unstructured.NestedString(claim, "spec", "storageClassName")
	if old, ok, _ := unstructured.NestedString(claim, "metadata", "annotations", storageClassAnnotation); ok {
		class = old
		remove(claim, "metadata", "annotations", storageClassAnnotation)
	}
	if class == "" {
		return nil
	}
	target := class
	if !slices.Contains(o.StorageClasses, class) {
		mapped, ok := o.StorageClassMapping[class]
		switch {
		case !ok:
			return noStorageClass("StorageClass %q does not exist in this cluster, and the StatefulApplicationClass does not map it: add it to storageClassMapping", class)
		case !slices.Contains(o.StorageClasses, mapped):
			return noStorageClass("StorageClass %q does not exist in this cluster, nor does %q, which the StatefulApplicationClass maps it to", class, mapped)
		}
		target = mapped
	}
	spec, ok := claim["spec"].(map[string]any)
	if !ok {
		spec = map[string]any{}
		claim["spec"] = spec
	}
	spec["storageClassName"] = target
	return nil
}
