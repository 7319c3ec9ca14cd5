package validation

import (
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/fluxcd/pkg/runtime/cel"
	celgo "github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"waybill.dev/waybill/api/v1alpha1"
)

// The limits of what installations and definitions name of each other, as in their schemas.
const (
	maxDependsOn       = 20
	maxRequires        = 20
	maxConditionLength = 1024
	maxRangeLength     = 128
)

// Missing returns what a definition requires that none of the installations of a cluster is, by the
// version that each wants; whether it is ready makes no difference.
func Missing(def *v1alpha1.ApplicationDefinition, installations []v1alpha1.ApplicationInstallation) []v1alpha1.ApplicationRequirement {
	var missing []v1alpha1.ApplicationRequirement
	for _, requirement := range def.Spec.Requires {
		if !slices.ContainsFunc(installations, func(i v1alpha1.ApplicationInstallation) bool {
			return i.Spec.ApplicationRef.Name == requirement.Name && Fits(requirement, i.GetVersion(nil))
		}) {
			missing = append(missing, requirement)
		}
	}
	return missing
}

// Fits reports whether a version is in the range of a requirement. Where that has none, every version
// is, known or not.
func Fits(requirement v1alpha1.ApplicationRequirement, version string) bool {
	if requirement.Version == "" {
		return true
	}
	wanted, err := semver.NewConstraint(requirement.Version)
	if err != nil {
		return false
	}
	v, err := semver.NewVersion(version)
	return err == nil && wanted.Check(v)
}

// DescribeRequirement names what is required: `db`, or `db >= 1.2`.
func DescribeRequirement(requirement v1alpha1.ApplicationRequirement) string {
	if requirement.Version == "" {
		return requirement.Name
	}
	return requirement.Name + " " + requirement.Version
}

// Cycle returns the way from start back to start along next, both ends included; nil if there is none.
// It visits no more than limit nodes.
func Cycle[K comparable](start K, limit int, next func(K) []K) []K {
	seen := map[K]bool{}
	var way func(at K) []K
	way = func(at K) []K {
		for _, to := range next(at) {
			if to == start {
				return []K{at, start}
			}
			if seen[to] || len(seen) >= limit {
				continue
			}
			seen[to] = true
			if rest := way(to); rest != nil {
				return append([]K{at}, rest...)
			}
		}
		return nil
	}
	return way(start)
}

// DependencyCycle returns the cycle that an installation is in by the dependsOn of installations, which
// find returns by their keys, nil for none; nil if it is in no cycle.
func DependencyCycle(obj *v1alpha1.ApplicationInstallation, find func(types.NamespacedName) *v1alpha1.ApplicationInstallation) []types.NamespacedName {
	own := types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}
	return Cycle(own, maxCycleNodes, func(key types.NamespacedName) []types.NamespacedName {
		at := obj
		if key != own {
			at = find(key)
		}
		if at == nil {
			return nil
		}
		var keys []types.NamespacedName
		for _, d := range at.Spec.DependsOn {
			keys = append(keys, d.GetKey(at.Namespace))
		}
		return keys
	})
}

// DescribeCycle writes down a cycle that an installation begins, without those of other namespaces that it does not
// name itself: who reads it may not be allowed to see them.
func DescribeCycle(obj *v1alpha1.ApplicationInstallation, cycle []types.NamespacedName) string {
	var names []string
	for _, key := range cycle {
		named := slices.ContainsFunc(obj.Spec.DependsOn, func(d v1alpha1.InstallationDependency) bool { return d.GetKey(obj.Namespace) == key })
		switch {
		case named || key.Namespace == obj.Namespace:
			names = append(names, key.String())
		case len(names) == 0 || names[len(names)-1] != others:
			names = append(names, others)
		}
	}
	return strings.Join(names, " -> ")
}

// others stands in a cycle for installations that are not named.
const others = "others"

// RequirementCycle returns the cycle that a definition is in by the requires of definitions, which find
// returns by their names, nil for none; nil if it is in no cycle.
func RequirementCycle(obj *v1alpha1.ApplicationDefinition, find func(string) *v1alpha1.ApplicationDefinition) []string {
	return Cycle(obj.Name, maxCycleNodes, func(name string) []string {
		at := obj
		if name != obj.Name {
			at = find(name)
		}
		if at == nil {
			return nil
		}
		var names []string
		for _, r := range at.Spec.Requires {
			names = append(names, r.Name)
		}
		return names
	})
}

// maxCycleNodes is how many installations or definitions are visited to find a cycle.
const maxCycleNodes = 10_000

func validateDependsOn(obj *v1alpha1.ApplicationInstallation, path *field.Path) field.ErrorList {
	dependencies := obj.Spec.DependsOn
	errs := atMost(len(dependencies), maxDependsOn, path)
	errs = append(errs, duplicates(dependencies, path, func(d v1alpha1.InstallationDependency) string {
		return d.GetKey(obj.Namespace).String()
	})...)
	for i, d := range dependencies {
		at := path.Index(i)
		errs = append(errs, validateObjectName(d.Name, at.Child("name"))...)
		if d.Namespace != "" {
			errs = append(errs, validateDNSLabel(d.Namespace, at.Child("namespace"))...)
		}
		if d.Name == obj.Name && (d.Namespace == "" || d.Namespace == obj.Namespace) {
			errs = append(errs, field.Invalid(at, d.Name, "an installation cannot depend on itself"))
		}
		errs = append(errs, validateDependencyCondition(d.Condition, at.Child("condition"))...)
	}
	return errs
}

// validateDependencyCondition compiles an expression over another installation.
func validateDependencyCondition(expression string, path *field.Path) field.ErrorList {
	if expression == "" {
		return nil
	}
	if len(expression) > maxConditionLength {
		return field.ErrorList{field.TooLong(path, "", maxConditionLength)}
	}
	_, err := cel.NewExpression(expression, cel.WithCompile(), cel.WithStructVariables("self"), cel.WithOutputType(celgo.BoolType))
	if err != nil {
		return field.ErrorList{field.Invalid(path, expression, err.Error())}
	}
	return nil
}

func validateRequires(obj *v1alpha1.ApplicationDefinition, path *field.Path) field.ErrorList {
	requires := obj.Spec.Requires
	errs := atMost(len(requires), maxRequires, path)
	errs = append(errs, duplicates(requires, path, func(r v1alpha1.ApplicationRequirement) string { return r.Name })...)
	for i, r := range requires {
		at := path.Index(i)
		errs = append(errs, validateObjectName(r.Name, at.Child("name"))...)
		if r.Name != "" && r.Name == obj.Name {
			errs = append(errs, field.Invalid(at.Child("name"), r.Name, "a definition cannot require itself"))
		}
		errs = append(errs, validateRange(r.Version, at.Child("version"))...)
	}
	return errs
}

func validateRange(text string, path *field.Path) field.ErrorList {
	if len(text) > maxRangeLength {
		return field.ErrorList{field.TooLong(path, "", maxRangeLength)}
	}
	if text == "" {
		return nil
	}
	if _, err := semver.NewConstraint(text); err != nil {
		return field.ErrorList{field.Invalid(path, text, "must be a range of semantic versions, such as `>= 1.2` or `1.x`")}
	}
	return nil
}

func validateBeforeUpgrade(b *v1alpha1.BeforeUpgrade, path *field.Path) field.ErrorList {
	if b == nil {
		return nil
	}
	var errs field.ErrorList
	at := path.Child("snapshot")
	if b.Snapshot == "" {
		errs = append(errs, field.Required(at, ""))
	}
	errs = append(errs, validateEnum(b.Snapshot, at, v1alpha1.SnapshotRequire, v1alpha1.SnapshotTry, v1alpha1.SnapshotNever)...)
	if b.ApplicationSnapshotClassName != "" {
		errs = append(errs, validateObjectName(b.ApplicationSnapshotClassName, path.Child("applicationSnapshotClassName"))...)
	}
	return errs
}
