package gitsync

import (
	"context"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/manifest"
)

// record is what may be in the clusters.
type record struct {
	// inventory is what had been delivered when no delivery was under way; intent adds what the
	// current deliveries have declared, and is nil if there are none.
	inventory []manifest.ID
	intent    *intent
	// uncollected says that a job has ended or was dropped, or a cluster was forgotten, since the
	// results of all clusters were last collected.
	uncollected bool
}

// due returns when the progress of the current deliveries is to be written again.
func (rec *record) due() []time.Time {
	if rec.intent == nil {
		return nil
	}
	return []time.Time{rec.intent.showDue, rec.intent.tellDue}
}

// known returns what may be in the clusters: what was delivered, and what deliveries have declared
// since, whether they are still under way or were superseded before they ended.
func (rec *record) known() []manifest.ID { return rec.knownThen()() }

// knownThen returns a function for a job that returns what is known when it is called: until the
// job begins, the job before it may declare more.
func (rec *record) knownThen() func() []manifest.ID {
	if rec.intent != nil {
		return rec.intent.known
	}
	delivered := rec.inventory
	return func() []manifest.ID { return delivered }
}

// settle ends the intent: what it recorded is now what may be in the clusters.
func (rec *record) settle() { rec.inventory, rec.intent = rec.known(), nil }

// collected is an inventory that was put into the status, which is still to be written.
type collected struct {
	inventory []manifest.ID
	// obsolete is what the status named before; nil if it names the same still.
	obsolete *v1alpha1.Inventory
}

// saveInventory saves the inventory and puts it, or a reference to it, into the status.
func (r *Reconciler) saveInventory(ctx context.Context, s *scope, ids []manifest.ID) error {
	current := recorded(s.gs)
	if s.gs.Status.Inventory != nil && slices.Equal(inventory.Encode(ids), inventory.Encode(s.session.record.inventory)) {
		s.collected = &collected{inventory: ids}
		return nil
	}
	saved, err := r.inventories.Save(ctx, r.Client, s.gs, current, ids)
	if err != nil {
		return err
	}
	s.gs.Status.Inventory = &saved
	s.collected = &collected{inventory: ids, obsolete: &current}
	return nil
}

// written takes over what was collected, once the status is written. Until then it is collected
// again by each pass.
func (r *Reconciler) written(ctx context.Context, s *scope) error {
	if s.collected == nil {
		return nil
	}
	s.session.record.inventory, s.session.record.uncollected = s.collected.inventory, false
	if s.collected.obsolete == nil {
		return nil
	}
	return r.inventories.Clean(ctx, r.Client, s.gs, *s.collected.obsolete, recorded(s.gs))
}

// recorded returns the inventory in the status.
func recorded(gs *v1alpha1.GitSync) v1alpha1.Inventory {
	return ptr.Deref(gs.Status.Inventory, v1alpha1.Inventory{})
}
