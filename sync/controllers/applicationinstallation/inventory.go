package applicationinstallation

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply/inventory"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// restore reads back, once after a start, what was installed. From then on the session holds what
// is known of the release, even if a status could not be written.
func (d *driver) restore(ctx context.Context, s *scope) error {
	if s.session.restored {
		s.inst.Status.Release = s.session.deployed.known()
		s.inst.Status.HealthAwaitedSince = sinceOf(s.session.healthAwaited)
		s.inst.Status.GivenUp = s.session.givenUp
		s.tellRemarks()
		return nil
	}
	ids, err := d.inventories.Load(ctx, d.client, s.inst, recorded(s.inst))
	if err != nil {
		return reconcile.Failed(v1alpha1.InventoryUnreadableReason, "%w", err)
	}
	s.session.deployed.set(ids)
	s.session.restore(s.inst)
	return nil
}

// tellRemarks sends an event for every remark that has had none yet.
func (s *scope) tellRemarks() {
	for _, r := range s.session.deployed.tell() {
		s.pass.Tell(reconcile.Event{Type: corev1.EventTypeWarning, Reason: r.reason, Action: r.reason, Note: r.note})
	}
}

// declare returns a function that records, from within a job, objects that are about to be created,
// so that a crash leaves nothing behind that nobody knows of (C41).
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

// keepInventory records in the status what is installed, or where that is listed.
func (d *driver) keepInventory(ctx context.Context, s *scope) error {
	ids := s.session.result.inventory
	if ids == nil || s.inst.Status.Inventory != nil && slices.Equal(inventory.Encode(ids), inventory.Encode(s.session.deployed.all())) {
		return nil
	}
	current := recorded(s.inst)
	saved, err := d.inventories.Save(ctx, d.client, s.inst, current, ids)
	if err != nil {
		return err
	}
	s.session.deployed.set(ids)
	s.inst.Status.Inventory, s.obsolete = &saved, &current
	return nil
}

// recorded returns the inventory of the status.
func recorded(inst *v1alpha1.ApplicationInstallation) v1alpha1.Inventory {
	return ptr.Deref(inst.Status.Inventory, v1alpha1.Inventory{})
}
