package applicationinstallation

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/api/validation"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// uninstall removes what was installed, or leaves it to others; the finalizer stays until that is done. It
// needs no source, nor the definition, which may forbid to leave it.
func (d *driver) uninstall(ctx context.Context, s *scope) (reconcile.Outcome, error) {
	s.looked = s.session.source.Rest()
	app := s.inst.Status.Application
	if app == nil {
		return reconcile.Outcome{Released: true}, nil
	}
	if err := d.restore(ctx, s); err != nil {
		return reconcile.Outcome{}, err
	}
	s.resolved = *app
	s.resolved.ServiceAccountName = cmp.Or(s.inst.Spec.ServiceAccountName, app.ServiceAccountName)
	s.session.prepared = nil
	orphans, err := d.orphans(ctx, s)
	if err != nil {
		return reconcile.Outcome{}, err
	}
	if !orphans {
		if err := d.dependentsGone(ctx, s); err != nil {
			return reconcile.Outcome{}, err
		}
	}
	if err := d.rollbackEnded(ctx, s); err != nil {
		return reconcile.Outcome{}, err
	}
	if s.unheeded != "" && !s.session.leaving.begun {
		s.pass.Tell(reconcile.Event{Type: corev1.EventTypeWarning, Reason: v1alpha1.DeletingReason, Action: "Uninstall", Note: s.unheeded})
	}
	s.session.beginUninstall()
	if s.backsOff(s.session.tried.attempts) {
		return reconcile.Outcome{}, d.remaining(s)
	}
	a := d.uninstallation(app.Method, orphans)
	if running := s.session.running; running != nil && running.kind != uninstall {
		running.abandon()
		begun := *running
		begun.work = func(context.Context, plan) acted { return acted{} } // none begins any more
		left, done := d.perform(s, &begun)
		if !done {
			return reconcile.Outcome{Pending: true}, nil
		}
		s.session.deployed.add(left.inventory) // Helm's record of it may be lost
		s.inst.Status.Release = s.session.deployed.known()
	}
	result, done := d.perform(s, a)
	if !done {
		return reconcile.Outcome{Pending: true}, nil
	}
	d.takeUninstall(s, a, result)
	if err := d.keepInventory(ctx, s); err != nil {
		return reconcile.Outcome{}, err
	}
	if result.err == nil && len(result.problems) == 0 && len(result.waiting) == 0 {
		return reconcile.Outcome{Released: true}, nil
	}
	return reconcile.Outcome{}, d.remaining(s)
}

// uninstallation returns the action that removes what was installed by a method, or leaves it.
func (d *driver) uninstallation(method v1alpha1.Method, orphans bool) *action {
	return &action{kind: uninstall, work: func(ctx context.Context, p plan) acted {
		if orphans {
			return d.unname(ctx, p, acted{findings: findings{inventory: p.inventory}})
		}
		refused := func(err error) acted { return acted{findings: findings{inventory: p.inventory, err: stuck(err)}} }
		got := d.actingAs(ctx, p, refused, func(p plan) acted { return d.methods[method].uninstall(ctx, p) })
		if reconcile.ReasonOf(got.err) == v1alpha1.ForbiddenReason {
			got.err = stuck(got.err)
		}
		return got
	}}
}

// orphans reports whether what is installed is to stay: the policy says so, and the definition, as it was
// last seen where it is gone, does not forbid that. Admission refuses what it forbids, where it is asked and
// knows the definition.
func (d *driver) orphans(ctx context.Context, s *scope) (bool, error) {
	if s.inst.Spec.DeletionPolicy != v1alpha1.InstallationOrphan {
		return false, nil
	}
	definition := &v1alpha1.ApplicationDefinition{}
	err := d.Hub.Get(ctx, types.NamespacedName{Name: s.inst.Spec.ApplicationRef.Name}, definition)
	if apierrors.IsNotFound(err) {
		definition, err = s.session.definition, nil
	}
	if err != nil {
		return false, fmt.Errorf("get definition: %w", err)
	}
	if definition != nil {
		s.unheeded = validation.OrphanForbiddenWarning(s.inst, definition)
	}
	return s.unheeded == "", nil
}

// unname deletes the Application that describes what is installed, and nothing else.
func (d *driver) unname(ctx context.Context, p plan, got acted) acted {
	d.applier.Unwatch(p.owner)
	result := d.applier.Delete(ctx, p.owner, []manifest.ID{{
		Group: v1alpha1.Group, Version: v1alpha1.GroupVersion.Version, Kind: v1alpha1.ApplicationKind,
		Namespace: p.resolved.Namespace, Name: p.inst.Name,
	}})
	got.inventory, got.problems, got.waiting = result.Inventory, result.Problems, result.Inventory
	if result.Err != nil {
		got.err = reconcile.Failed(v1alpha1.UninstallFailedReason, "%w", prefixed("uninstall", p, result.Err))
	}
	return got
}

// remaining returns an error that says what an uninstall waits for.
func (d *driver) remaining(s *scope) error {
	result := s.session.result
	wrong := result.wrong()
	switch {
	case wrong != nil:
		return reconcile.Waiting(v1alpha1.UninstallFailedReason, s.requeueAfter(), "%w", wrong)
	case len(result.waiting) > 0:
		return reconcile.Waiting(v1alpha1.DeletingReason, s.requeueAfter(), "waiting for %s%s to be gone%s", result.waiting[0], excerpt.AndMore(len(result.waiting)-1), s.butOrphan())
	default:
		return reconcile.Waiting(v1alpha1.DeletingReason, s.requeueAfter(), "uninstalling %s%s", s.resolved.Name, s.butOrphan())
	}
}

// butOrphan says, to be appended to a message, that the deletion policy is not heeded.
func (s *scope) butOrphan() string {
	if s.unheeded == "" {
		return ""
	}
	return "; " + s.unheeded
}

// release removes the finalizer of the installation and forgets it.
func (d *driver) release(ctx context.Context, s *scope) error {
	if err := reconcile.RemoveFinalizer(ctx, d.client, s.inst); err != nil {
		return err
	}
	d.forget(s.key())
	return nil
}

// meet notes that an installation exists. If another of its name did before, that is gone.
func (d *driver) meet(inst *v1alpha1.ApplicationInstallation) {
	name, uid := client.ObjectKeyFromObject(inst), inst.UID
	if before := d.met.Get(name); before != nil && *before != uid {
		d.forget(name)
	}
	d.met.Of(name, func() *types.UID { return &uid })
}

// forget drops what is remembered of an installation that is gone, however it went.
func (d *driver) forget(name types.NamespacedName) {
	uid := d.met.Get(name)
	if uid == nil {
		return
	}
	gone := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, UID: *uid}}
	key := d.jobKey(gone)
	d.fetches.Drop(key)
	d.acts.Drop(key)
	d.applier.Forget(d.owner(gone))
	d.told.Forget(name)
	d.waits.set(name)
	d.inventories.Forget(gone)
	d.sessions.Drop(*uid)
	d.kernel.Forget(*uid)
	d.met.Drop(name)
	forgetMetrics(d.cluster, name)
}
