package validation

import (
	"maps"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
)

// Limits of the tags of a snapshot: as long as a key of a label, and as what a pre-hook may print.
const (
	maxTagKey   = 317
	maxTagValue = 1 << 10
)

// ValidateApplicationSnapshot returns what is wrong with an ApplicationSnapshot. What is immutable in
// it the schema guards.
func ValidateApplicationSnapshot(obj *v1alpha1.ApplicationSnapshot) field.ErrorList {
	spec := &obj.Spec
	errs := validateMetadata(obj.ObjectMeta, namespaced)
	errs = append(errs, validateObjectName(spec.SnapshotClassName, specPath.Child("snapshotClassName"))...)
	errs = append(errs, validateOptionalName(spec.Source.ApplicationName, specPath.Child("source", "applicationName"))...)
	errs = append(errs, validateTags(spec.Tags, specPath.Child("tags"))...)
	errs = append(errs, validateSelector(spec.PersistentVolumeClaimFilter, specPath.Child("persistentVolumeClaimFilter"))...)
	return append(errs, validateOptionalName(spec.SnapshotContentName, specPath.Child("snapshotContentName"))...)
}

// ValidateApplicationSnapshotClass returns what is wrong with an ApplicationSnapshotClass.
func ValidateApplicationSnapshotClass(obj *v1alpha1.ApplicationSnapshotClass) field.ErrorList {
	errs := validateMetadata(obj.ObjectMeta, clusterScoped)
	errs = append(errs, validateHandler("snapshotter", obj.Snapshotter, obj.Parameters)...)
	errs = append(errs, validateNames(obj.VolumeSnapshotClassNames, field.NewPath("volumeSnapshotClassNames"))...)
	errs = append(errs, validateNames(obj.VolumeGroupSnapshotClassNames, field.NewPath("volumeGroupSnapshotClassNames"))...)
	errs = append(errs, validateHooks(obj.PreHooks, field.NewPath("preHooks"))...)
	return append(errs, validateHooks(obj.PostHooks, field.NewPath("postHooks"))...)
}

// ValidateApplicationSnapshotContent returns what is wrong with an ApplicationSnapshotContent. What is
// immutable in it the schema guards.
func ValidateApplicationSnapshotContent(obj *v1alpha1.ApplicationSnapshotContent) field.ErrorList {
	spec := &obj.Spec
	errs := validateMetadata(obj.ObjectMeta, clusterScoped)
	errs = append(errs, validateObjectName(spec.SnapshotClassName, specPath.Child("snapshotClassName"))...)
	if spec.SnapshotRef != nil {
		errs = append(errs, validateReference(*spec.SnapshotRef, specPath.Child("snapshotRef"))...)
	}
	volumes := specPath.Child("volumeSnapshotRefs")
	for _, claim := range slices.Sorted(maps.Keys(spec.VolumeSnapshotRefs)) {
		errs = append(errs, validateDNSSubdomain(claim, volumes.Key(claim))...)
		errs = append(errs, validateReference(spec.VolumeSnapshotRefs[claim], volumes.Key(claim))...)
	}
	if h := spec.MetadataHandle; h != nil && h.Object != nil {
		errs = append(errs, validateDNSSubdomain(h.Object.Name, specPath.Child("metadataHandle", "object", "name"))...)
	}
	return append(errs, validateTags(spec.Tags, specPath.Child("tags"))...)
}

func validateReference(ref v1alpha1.NamespacedReference, path *field.Path) field.ErrorList {
	return append(validateDNSLabel(ref.Namespace, path.Child("namespace")), validateObjectName(ref.Name, path.Child("name"))...)
}

func validateTags(tags map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if key == "" {
			errs = append(errs, field.Invalid(path, key, "a tag needs a key"))
		}
		if len(key) > maxTagKey {
			errs = append(errs, field.TooLong(path, key, maxTagKey))
		}
		if value := tags[key]; len(value) > maxTagValue {
			errs = append(errs, field.TooLong(path.Key(key), value, maxTagValue))
		}
	}
	return errs
}

// validateHooks also refuses hooks that run in the same containers, as far as the class shows it: which
// Pods two selectors both match, and which container is the first, only the application shows.
func validateHooks(hooks []v1alpha1.HookSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range hooks {
		errs = append(errs, validateSelector(hooks[i].PodFilter, path.Index(i).Child("podFilter"))...)
		errs = append(errs, validateObjectName(hooks[i].ActionName, path.Index(i).Child("actionName"))...)
		for j := range i {
			if hooks[i].Container == hooks[j].Container && overlap(hooks[i].PodFilter, hooks[j].PodFilter) {
				errs = append(errs, field.Invalid(path.Index(i), hooks[i].Name,
					"runs in the same container as hook \""+hooks[j].Name+"\": have one HookAction do both, or narrow podFilter"))
				break
			}
		}
	}
	return errs
}

// overlap reports whether both select the same Pods, or one selects all.
func overlap(a, b *metav1.LabelSelector) bool {
	all := func(s *metav1.LabelSelector) bool { return s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 }
	return all(a) || all(b) || apiequality.Semantic.DeepEqual(a, b)
}
