package gitsync

import (
	"context"
	"sync"

	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/cluster"
)

// appliers holds one applier per cluster and identity, for as long as a target holds it.
type appliers struct {
	notify func(cluster string, owner apply.Owner)

	mu     sync.Mutex
	byView map[*cluster.Cluster]*sharedApplier
}

// sharedApplier is an applier and the owners that hold it.
type sharedApplier struct {
	*apply.Applier
	end     context.CancelFunc
	holders map[apply.Owner]bool
}

func newAppliers(notify func(string, apply.Owner)) *appliers {
	return &appliers{notify: notify, byView: map[*cluster.Cluster]*sharedApplier{}}
}

// hold returns the applier of a cluster under one identity; base is the cluster as Waybill itself sees
// it. The applier exists until every owner that holds it has let it go.
func (a *appliers) hold(view, base *cluster.Cluster, owner apply.Owner) *apply.Applier {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.byView[view]
	if found == nil {
		ctx, end := context.WithCancel(view.Context())
		name := view.Name().Name
		options := apply.Options{Notify: func(o apply.Owner) { a.notify(name, o) }, Rollbacks: base}
		found = &sharedApplier{Applier: apply.New(ctx, view, options), end: end, holders: map[apply.Owner]bool{}}
		a.byView[view] = found
	}
	found.holders[owner] = true
	return found.Applier
}

// letGo makes the applier forget an owner, and drops the applier if no other owner holds it.
func (a *appliers) letGo(view *cluster.Cluster, owner apply.Owner) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.byView[view]
	found.Forget(owner)
	if delete(found.holders, owner); len(found.holders) == 0 {
		found.end()
		delete(a.byView, view)
	}
}
