package applicationinstallation

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// restore reads back, once after a start, what was installed. From then on the session holds what
// is known of the release, even if a status could not be written.
func (d *driver) restore(ctx context.Context, s *scope) error {
	if s.session.restored {
		// While an action runs that is no uninstall, it is reported with the rest of what that has done.
		if running := s.session.running; running == nil || running.kind == uninstall {
			s.inst.Status.Release = s.session.deployed.known()
		}
		s.inst.Status.HealthAwaitedSince = sinceOf(s.session.deadline.since)
		s.inst.Status.GivenUp, s.inst.Status.Rendering = s.session.tried.givenUp, s.session.rendering
		s.inst.Status.UpgradeRollback = s.session.undo.DeepCopy()
		s.tellRemarks()
		return nil
	}
	ids, err := d.inventories.Load(ctx, d.client, s.inst, recorded(s.inst))
	if err != nil {
		return reconcile.Failed(v1alpha1.InventoryUnreadableReason, "%w", err)
	}
	s.session.deployed.set(ids)
	s.session.restore(s.inst)
	s.session.awaitTurn(d.kernel.Backoff)
	return nil
}

// tellRemarks sends an event for every remark that has had none yet.
func (s *scope) tellRemarks() {
	for _, r := range s.session.deployed.tell() {
		s.pass.Tell(reconcile.Event{Type: corev1.EventTypeWarning, Reason: r.reason, Action: r.reason, Note: r.note})
	}
}

// declare returns a function that records, from within a job, objects that are about to be created,
// so that a crash leaves nothing behind that is not recorded.
func (d *driver) declare(p plan) func(context.Context, []manifest.ID) error {
	return func(ctx context.Context, ids []manifest.ID) error {
		inst := p.inst.DeepCopy()
		saved, err := d.inventories.Save(ctx, d.client, inst, recorded(inst), ids)
		if err != nil {
			return err
		}
		inst.Status.Inventory = &saved
		if err := d.kernel.Record(ctx, d.client, inst); err != nil {
			return err
		}
		p.deployed.add(ids)
		return nil
	}
}

// keepInventory records in the status what is installed, or where that is listed, until the status was
// written.
func (d *driver) keepInventory(ctx context.Context, s *scope) error {
	ids, listed := s.session.result.inventory, s.session.deployed.all()
	if ids == nil && s.session.unsaved {
		ids = listed
	}
	saved := s.inst.Status.Inventory != nil && !s.session.unsaved
	if ids == nil || saved && slices.Equal(inventory.Encode(ids), inventory.Encode(listed)) {
		return nil
	}
	return d.saveInventory(ctx, s, ids)
}

func (d *driver) saveInventory(ctx context.Context, s *scope, ids []manifest.ID) error {
	current := recorded(s.inst)
	saved, err := d.inventories.Save(ctx, d.client, s.inst, current, ids)
	if err != nil {
		return err
	}
	s.session.deployed.set(ids)
	s.session.unsaved = true
	s.inst.Status.Inventory, s.obsolete = &saved, &current
	return nil
}

// keptInventory says that the status was written, and deletes what listed the objects before.
func (d *driver) keptInventory(ctx context.Context, s *scope) error {
	if s.obsolete == nil {
		return nil
	}
	s.session.unsaved = false
	return d.inventories.Clean(ctx, d.client, s.inst, *s.obsolete, recorded(s.inst))
}

// recorded returns the inventory of the status.
func recorded(inst *v1alpha1.ApplicationInstallation) v1alpha1.Inventory {
	return ptr.Deref(inst.Status.Inventory, v1alpha1.Inventory{})
}
