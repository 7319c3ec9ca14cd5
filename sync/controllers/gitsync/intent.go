package gitsync

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/manifest"
)

// intent records what the deliveries of one revision are about to create before they create it: if
// the process crashes at any later point, every object left behind is in the inventory. The
// deliveries to all clusters share it.
type intent struct {
	reconciler *Reconciler

	// writing is held while the status is written.
	writing sync.Mutex
	// gs is the GitSync as last written, with the state that the deliveries started from.
	gs *v1alpha1.GitSync

	// inventory is the recorded inventory. It can be read while the status is written, so that no worker
	// waits for the write of a job.
	inventory atomic.Pointer[[]manifest.ID]

	// The rest is used by passes only.

	// shown is when the clusters' progress was last written, and showDue is when to write it again; zero
	// if there is nothing new.
	shown, showDue time.Time
	// told is how far the deliveries are as the conditions last said, since toldAt; tellDue is when to
	// write it again, and zero if there is nothing new.
	told            string
	toldAt, tellDue time.Time
}

// intend returns the intent of the deliveries that are under way. If there is none yet, it begins
// one.
func (r *Reconciler) intend(s *scope) *intent {
	rec := &s.session.record
	if rec.intent == nil {
		gs := s.gs.DeepCopy()
		gs.Status.AttemptedRevision = s.attemptedRevision()
		gs.Status.Clusters = s.clusterStatuses()
		text := fmt.Sprintf("applying %s: %s", s.session.desired.source.revision, excerpt.Count(s.session.desired.count, "object"))
		conditions.MarkReconciling(gs, v1alpha1.ProgressingReason, "%s", text)
		if !conditions.Has(gs, v1alpha1.ReadyCondition) {
			markProgress(gs, text)
		}
		delivered := rec.inventory
		rec.intent = &intent{reconciler: r, gs: gs}
		rec.intent.inventory.Store(&delivered)
	}
	return rec.intent
}

// declare is called by a delivery before it creates objects that the inventory does not list.
func (i *intent) declare(ctx context.Context, ids []manifest.ID) error {
	i.writing.Lock()
	defer i.writing.Unlock()
	known := i.known()
	union := inventory.Merge(known, ids)
	if len(union) == len(known) {
		return nil
	}
	r, current := i.reconciler, recorded(i.gs)
	saved, err := r.inventories.Save(ctx, r.Client, i.gs, current, union)
	if err != nil {
		return err
	}
	i.gs.Status.Inventory = &saved
	if err := r.kernel.Record(ctx, r.Client, i.gs); err != nil {
		return err
	}
	i.inventory.Store(&union)
	return nil
}

// known returns the recorded inventory.
func (i *intent) known() []manifest.ID { return *i.inventory.Load() }

// showEvery is the minimum time between two writes of the clusters' progress.
const showEvery = 50 * time.Millisecond

// show writes the clusters' progress to the status while some are still at work, so that one that
// is slow or does not answer does not hide the results of the others.
func (s *scope) show(ctx context.Context) error {
	i, now, clusters := s.session.record.intent, time.Now(), s.clusterStatuses()
	if i == nil {
		return nil
	}
	news := s.delivered || !i.showDue.IsZero()
	i.showDue = time.Time{}
	if !s.pending || len(clusters) == 0 || !news {
		return nil
	}
	if due := i.shown.Add(showEvery); now.Before(due) {
		i.showDue = due
		return nil
	}
	i.shown = now
	return i.show(ctx, clusters)
}

// show writes the status through the intent, whose own writes would otherwise revert it.
func (i *intent) show(ctx context.Context, clusters []v1alpha1.GitSyncClusterStatus) error {
	i.writing.Lock()
	defer i.writing.Unlock()
	i.gs.Status.Clusters = clusters
	return i.reconciler.kernel.Record(ctx, i.reconciler.Client, i.gs)
}
