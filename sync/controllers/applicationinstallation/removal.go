package applicationinstallation

import (
	"context"
	"slices"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/reconcile"
)

// together is how long an installation that is deleted waits for those that depend on it to be deleted,
// too: who deletes several, or a namespace, begins with any of them.
const together = 3 * time.Second

// patience is how long an installation that is deleted waits for those that depend on it and that its users may
// be unable to help: those of other namespaces, and those whose own uninstall fails.
const patience = 10 * time.Minute

// dependentsGone returns an error as long as others that depend on the installation are being deleted as
// well: they are uninstalled first. Those that it needs itself, as in a cycle, are not waited for.
func (d *driver) dependentsGone(ctx context.Context, s *scope) error {
	if s.session.leaving.begun {
		return nil
	}
	dependents, err := d.dependents(ctx, s)
	if err != nil {
		return err
	}
	if s.session.leaving.since.IsZero() {
		s.session.leaving.since = s.now
	}
	since := s.now.Sub(s.session.leaving.since)
	if err := waitForDependents(s.inst, dependents, since); err != nil {
		on := make([]awaited, 0, len(dependents))
		for _, other := range dependents {
			on = append(on, awaited{installation: keyOf(other)})
		}
		d.waits.set(s.key(), on...)
		return err
	}
	d.waits.set(s.key())
	return nil
}

// waitForDependents returns an error that says which of those that depend on an installation it waits for, which
// it has been seen being deleted for so long; nil for none. Those of other namespaces are counted and not named:
// who reads the status may not be allowed to see them.
func waitForDependents(inst *v1alpha1.ApplicationInstallation, dependents []*v1alpha1.ApplicationInstallation, since time.Duration) error {
	var own []types.NamespacedName
	var after time.Duration
	others, staying := 0, false
	for _, other := range dependents {
		elsewhere := other.Namespace != inst.Namespace
		helpless := elsewhere || conditions.GetReason(other, v1alpha1.ReadyCondition) == v1alpha1.UninstallFailedReason
		switch {
		case other.DeletionTimestamp.IsZero():
			staying = true
			continue
		case helpless && since >= patience:
			continue
		case helpless:
			after = patience - since
		}
		if elsewhere {
			others++
		} else {
			own = append(own, keyOf(other))
		}
	}
	switch {
	case len(own) > 0:
		return reconcile.Waiting(v1alpha1.DeletingReason, after, "waiting for ApplicationInstallation %s%s, which depends on it, to be gone",
			own[0], excerpt.AndMore(len(own)-1+others))
	case others > 0:
		return reconcile.Waiting(v1alpha1.DeletingReason, after, "waiting %d minutes at most for installations of other namespaces that depend on it to be gone: %d",
			int(patience.Minutes()), others)
	case staying && since < together:
		return reconcile.Waiting(v1alpha1.DeletingReason, together-since, "waiting a moment for the installations that depend on it to be deleted, too")
	default:
		return nil
	}
}

// dependents returns the installed installations that need this one, without those that it needs itself. One
// whose definition requires that of this one does not, where another installation meets that; nor does one that is
// uninstalled already and stays for others that hold it.
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
		required := slices.ContainsFunc(requires[other.Spec.ApplicationRef.Name], func(r v1alpha1.ApplicationRequirement) bool {
			return r.Name == s.inst.Spec.ApplicationRef.Name && lacks(other, r, all) != ""
		})
		if (named || required) && isInstalled(other) && !needed[keyOf(other)] {
			dependents = append(dependents, other)
		}
	}
	return dependents, nil
}

// isInstalled reports whether anything of an installation is in the cluster, as far as it is known.
func isInstalled(inst *v1alpha1.ApplicationInstallation) bool {
	left := !inst.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(inst, v1alpha1.Finalizer)
	return inst.Status.Application != nil && !left
}
