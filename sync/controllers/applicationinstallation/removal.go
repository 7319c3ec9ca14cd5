package applicationinstallation

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/reconcile"
)

// together is how long an installation that is deleted waits for those that depend on it to be deleted,
// too: who deletes several, or a namespace, begins with any of them.
const together = 3 * time.Second

// dependentsGone returns an error as long as others that depend on the installation are being deleted as
// well: they are uninstalled first. Those that it needs itself, as in a cycle, are not waited for.
func (d *driver) dependentsGone(ctx context.Context, s *scope) error {
	if s.session.uninstalling {
		return nil
	}
	dependents, err := d.dependents(ctx, s)
	if err != nil {
		return err
	}
	var leaving []types.NamespacedName
	staying := false
	on := make([]awaited, 0, len(dependents))
	for _, other := range dependents {
		on = append(on, awaited{installation: keyOf(other)})
		if staying = staying || other.DeletionTimestamp.IsZero(); !other.DeletionTimestamp.IsZero() {
			leaving = append(leaving, keyOf(other))
		}
	}
	if s.session.leftSince.IsZero() {
		s.session.leftSince = s.now
	}
	rest := together - s.now.Sub(s.session.leftSince)
	switch {
	case len(leaving) > 0:
		d.waits.set(s.key(), on...)
		return reconcile.Waiting(v1alpha1.DeletingReason, 0, "waiting for ApplicationInstallation %s%s, which depends on it, to be gone",
			leaving[0], excerpt.AndMore(len(leaving)-1))
	case staying && rest > 0:
		d.waits.set(s.key(), on...)
		return reconcile.Waiting(v1alpha1.DeletingReason, rest, "waiting a moment for the installations that depend on it to be deleted, too")
	default:
		d.waits.set(s.key())
		return nil
	}
}

// dependents returns the installed installations that need this one, without those that it needs itself.
func (d *driver) dependents(ctx context.Context, s *scope) ([]*v1alpha1.ApplicationInstallation, error) {
	all, err := d.installations(ctx)
	if err != nil {
		return nil, err
	}
	needs, err := d.needs(ctx)
	if err != nil {
		return nil, err
	}
	requires, err := d.requiring(ctx)
	if err != nil {
		return nil, err
	}
	needed := map[types.NamespacedName]bool{s.key(): true}
	for queue := []types.NamespacedName{s.key()}; len(queue) > 0; queue = queue[1:] {
		for _, key := range needs(queue[0]) {
			if !needed[key] {
				needed[key], queue = true, append(queue, key)
			}
		}
	}
	var dependents []*v1alpha1.ApplicationInstallation
	for i := range all {
		other := &all[i]
		named := slices.ContainsFunc(other.Spec.DependsOn, func(on v1alpha1.InstallationDependency) bool { return on.GetKey(other.Namespace) == s.key() })
		required := slices.Contains(requires[other.Spec.ApplicationRef.Name], s.inst.Spec.ApplicationRef.Name)
		if (named || required) && other.Status.Application != nil && !needed[keyOf(other)] {
			dependents = append(dependents, other)
		}
	}
	return dependents, nil
}
