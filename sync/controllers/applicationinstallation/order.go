package applicationinstallation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/runtime/conditions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/reconcile"
)

// order finds out whether what was prepared may be installed: the installations that it depends on, and
// those that its definition requires, are ready, and the snapshot is there that is taken before. What is
// installed stays and is corrected until then, and what was begun does not wait once more.
//
// What waits is not kept, because it may take much memory: it is fetched once more when the wait is over.
func (d *driver) order(ctx context.Context, s *scope) error {
	x := s.session
	if x.running != nil {
		return nil
	}
	next := x.awaiting
	if got := x.prepared; got != nil {
		next.digest, next.moved = got.digest, got.moved()
	}
	if next.moved == "" || x.holding.held() || !s.isNew(next.digest, next.moved) || s.inst.Status.Begun == next.moved {
		x.awaiting = awaiting{}
		d.waits.set(s.key())
		return nil
	}
	d.waits.set(s.key(), s.awaits()...)
	before := x.awaiting
	x.awaiting = next
	for _, step := range []func(context.Context, *scope) error{d.dependencies, d.requirements, d.snapshotFirst} {
		err := step(ctx, s)
		if reconcile.ReasonOf(err) == "" && err != nil {
			return err
		}
		if err != nil {
			s.waits, x.prepared, x.awaiting.over = err, nil, false
			return nil
		}
	}
	d.waits.set(s.key())
	if x.awaiting.over = true; x.prepared == nil && !before.over {
		d.prepare(s)
	}
	return nil
}

// awaiting is what was prepared for an install or upgrade that waits for others.
type awaiting struct {
	// digest and moved are those of what was prepared.
	digest, moved string
	// over says that the wait is over.
	over bool
	// settled is what the snapshot was taken before, or given up, and snapshot that one; nil for none.
	settled  string
	snapshot *v1alpha1.UpgradeSnapshot
}

// ordered reports whether the installation waits for anything before it is installed or upgraded.
func (s *scope) ordered() bool {
	return len(s.inst.Spec.DependsOn) > 0 || s.definition != nil && len(s.definition.Spec.Requires) > 0 || s.takesSnapshots()
}

// noteBegun records what is about to be installed, so that it does not wait once more; nothing where
// nothing is waited for. The snapshot that was taken before it is recorded along with it.
func (s *scope) noteBegun(moved string) {
	if !s.ordered() {
		moved = ""
	}
	if s.inst.Status.Begun != moved {
		s.inst.Status.UpgradeSnapshot = s.session.awaiting.snapshot
	}
	s.inst.Status.Begun = moved
}

// noteInstalled records what is installed as begun where that was not known to be needed then.
func (s *scope) noteInstalled() {
	x := s.session
	if s.missing == nil && s.waits == nil && x.tried.phase() == phaseWell && x.installed.moved != "" && x.installed.digest == s.digest && !x.holding.held() {
		s.noteBegun(x.installed.moved)
	}
}

// awaits returns everything whose change may let the installation go on.
func (s *scope) awaits() []awaited {
	var on []awaited
	for _, dependency := range s.inst.Spec.DependsOn {
		on = append(on, awaited{installation: dependency.GetKey(s.inst.Namespace)})
	}
	for _, requirement := range s.definition.Spec.Requires {
		on = append(on, awaited{definition: requirement.Name})
	}
	return on
}

// dependencies returns why one of the installations that the spec names is not ready; nil if all are.
func (d *driver) dependencies(ctx context.Context, s *scope) error {
	var unready []string
	for _, dependency := range s.inst.Spec.DependsOn {
		key, found := dependency.GetKey(s.inst.Namespace), &v1alpha1.ApplicationInstallation{}
		err := d.client.Get(ctx, key, found, client.UnsafeDisableDeepCopy)
		switch {
		case apierrors.IsNotFound(err):
			unready = append(unready, fmt.Sprintf("ApplicationInstallation %s, which does not exist", key))
		case err != nil:
			return fmt.Errorf("get ApplicationInstallation %s: %w", key, err)
		default:
			why, err := unmetBy(found, dependency.Condition)
			if err != nil {
				return err
			}
			if why != "" {
				unready = append(unready, fmt.Sprintf("ApplicationInstallation %s, %s", key, why))
			}
		}
	}
	if len(unready) == 0 {
		return nil
	}
	if err := d.refuseCycle(ctx, s); err != nil {
		return err
	}
	return reconcile.Waiting(v1alpha1.DependencyNotReadyReason, 0, "waiting for %s%s", unready[0], excerpt.AndMore(len(unready)-1))
}

// unmetBy says why an installation is not as another one needs it; empty if it is. An error means that
// this cannot be known.
func unmetBy(found *v1alpha1.ApplicationInstallation, condition string) (string, error) {
	if !found.DeletionTimestamp.IsZero() {
		return "which is being deleted", nil
	}
	if condition == "" {
		return unready(found), nil
	}
	compiled, err := health.NewCondition(condition)
	if err != nil {
		return "", reconcile.Stalled(v1alpha1.InvalidSpecReason, "condition of spec.dependsOn on ApplicationInstallation %s: %w", client.ObjectKeyFromObject(found), err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(found)
	if err != nil {
		return "", fmt.Errorf("convert ApplicationInstallation %s: %w", client.ObjectKeyFromObject(found), err)
	}
	met, err := compiled.Of(&unstructured.Unstructured{Object: content}, "values", "valuesBlock")
	switch {
	case err != nil:
		return fmt.Sprintf("of which the condition %q %s", excerpt.Line(condition), err), nil
	case !met:
		return fmt.Sprintf("of which the condition %q is not true", excerpt.Line(condition)), nil
	default:
		return "", nil
	}
}

// unready says why an installation is not ready in its generation and the version that it wants; empty
// if it is.
func unready(found *v1alpha1.ApplicationInstallation) string {
	wanted, installed := found.Spec.ApplicationRef.Version, found.Status.Application
	switch {
	case found.Status.ObservedGeneration != found.Generation:
		return "whose last change was not handled yet"
	case !conditions.IsReady(found):
		reason := conditions.GetReason(found, v1alpha1.ReadyCondition)
		if reason == "" {
			return "which is not ready"
		}
		return "which is not ready: " + reason
	case installed == nil:
		return "which is not installed"
	case wanted != "" && !v1alpha1.SameVersion(wanted, installed.Version):
		return fmt.Sprintf("which has version %s, and not %s yet", installed.Version, wanted)
	default:
		return ""
	}
}

// requirements returns which of the definitions that the definition requires has no installation that is
// ready in a version that fits; nil if each has.
func (d *driver) requirements(ctx context.Context, s *scope) error {
	if len(s.definition.Spec.Requires) == 0 {
		return nil
	}
	all, err := d.installations(ctx)
	if err != nil {
		return err
	}
	var missing []string
	for _, requirement := range s.definition.Spec.Requires {
		if why := lacks(s.inst, requirement, all); why != "" {
			missing = append(missing, why)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := d.refuseCycle(ctx, s); err != nil {
		return err
	}
	return reconcile.Waiting(v1alpha1.RequirementMissingReason, 0, "ApplicationDefinition %s requires %s%s",
		s.definition.Name, missing[0], excerpt.AndMore(len(missing)-1))
}

// lacks says why no installation meets a requirement of another one; empty if one does. Installations of
// other namespaces are not named: who installs this one may not be allowed to see them.
func lacks(inst *v1alpha1.ApplicationInstallation, requirement v1alpha1.ApplicationRequirement, all []v1alpha1.ApplicationInstallation) string {
	named, others := "", 0
	for i := range all {
		other := &all[i]
		if other.Spec.ApplicationRef.Name != requirement.Name || other.UID == inst.UID {
			continue
		}
		why := unmetVersion(other, requirement)
		switch {
		case why == "":
			return ""
		case other.Namespace == inst.Namespace && (named == "" || other.Name < named):
			named = fmt.Sprintf("%s, but ApplicationInstallation %s/%s %s", validation.DescribeRequirement(requirement), other.Namespace, other.Name, why)
		case other.Namespace != inst.Namespace:
			others++
		}
	}
	switch {
	case named != "":
		return named
	case others > 0:
		return validation.DescribeRequirement(requirement) + ", and no installation of it in the cluster is ready in a version that fits"
	default:
		return validation.DescribeRequirement(requirement) + ", of which the cluster has no installation"
	}
}

// unmetVersion says why an installation does not meet a requirement; empty if it does.
func unmetVersion(other *v1alpha1.ApplicationInstallation, requirement v1alpha1.ApplicationRequirement) string {
	installed := other.Status.Application
	switch {
	case !other.DeletionTimestamp.IsZero():
		return "is being deleted"
	case installed != nil && !validation.Fits(requirement, installed.Version):
		return "has version " + installed.Version
	}
	switch why := unready(other); {
	case why == "":
		return ""
	case strings.HasPrefix(why, "which "):
		return strings.TrimPrefix(why, "which ")
	default:
		return "has a change that was not handled yet"
	}
}

// installations returns all installations of the cluster, sorted; they belong to the cache.
func (d *driver) installations(ctx context.Context) ([]v1alpha1.ApplicationInstallation, error) {
	found := &v1alpha1.ApplicationInstallationList{}
	if err := d.client.List(ctx, found, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list installations: %w", err)
	}
	all := slices.Clone(found.Items)
	slices.SortFunc(all, func(a, b v1alpha1.ApplicationInstallation) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

func keyOf(inst *v1alpha1.ApplicationInstallation) types.NamespacedName {
	return client.ObjectKeyFromObject(inst)
}

// refuseCycle returns an error if the installation waits for itself through others. A change of any of
// them enqueues it.
func (d *driver) refuseCycle(ctx context.Context, s *scope) error {
	needs, err := d.needs(ctx)
	if err != nil {
		return err
	}
	cycle := validation.Cycle(s.key(), maxOrder, needs)
	if cycle == nil {
		return nil
	}
	on := s.awaits()
	for _, key := range cycle {
		on = append(on, awaited{installation: key})
	}
	d.waits.set(s.key(), on...)
	return reconcile.Stalled(v1alpha1.DependencyCycleReason, "the installation waits for itself: %s: remove one of them from spec.dependsOn, or from spec.requires of its definition",
		excerpt.Of(validation.DescribeCycle(s.inst, cycle), maxMessage))
}

// maxOrder is how many installations are looked at for a cycle.
const maxOrder = 10_000

// needs returns a function that returns what an installation needs: what its dependsOn names, and, of a
// definition that its own requires, the only installation.
func (d *driver) needs(ctx context.Context) (func(types.NamespacedName) []types.NamespacedName, error) {
	all, err := d.installations(ctx)
	if err != nil {
		return nil, err
	}
	requires, err := d.requiring(ctx)
	if err != nil {
		return nil, err
	}
	found, of := map[types.NamespacedName]*v1alpha1.ApplicationInstallation{}, map[string][]types.NamespacedName{}
	for i := range all {
		inst := &all[i]
		found[keyOf(inst)] = inst
		of[inst.Spec.ApplicationRef.Name] = append(of[inst.Spec.ApplicationRef.Name], keyOf(inst))
	}
	return func(key types.NamespacedName) []types.NamespacedName {
		inst := found[key]
		if inst == nil {
			return nil
		}
		var needed []types.NamespacedName
		for _, dependency := range inst.Spec.DependsOn {
			needed = append(needed, dependency.GetKey(inst.Namespace))
		}
		for _, requirement := range requires[inst.Spec.ApplicationRef.Name] {
			if only := of[requirement.Name]; len(only) == 1 {
				needed = append(needed, only[0])
			}
		}
		return needed
	}, nil
}

// requiring returns what each definition of the hub requires, by its name.
func (d *driver) requiring(ctx context.Context) (map[string][]v1alpha1.ApplicationRequirement, error) {
	definitions := &v1alpha1.ApplicationDefinitionList{}
	if err := d.Hub.List(ctx, definitions, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list definitions: %w", err)
	}
	requires := map[string][]v1alpha1.ApplicationRequirement{}
	for i := range definitions.Items {
		requires[definitions.Items[i].Name] = definitions.Items[i].Spec.Requires
	}
	return requires, nil
}
