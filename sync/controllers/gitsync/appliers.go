package gitsync

import (
	"context"
	"sync"

	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/cluster"
)

// appliers has one applier per cluster and identity, for as long as the cluster is engaged.
type appliers struct {
	notify func(cluster string, owner apply.Owner)

	mu     sync.Mutex
	byView map[*cluster.Cluster]*apply.Applier
}

func newAppliers(notify func(string, apply.Owner)) *appliers {
	return &appliers{notify: notify, byView: map[*cluster.Cluster]*apply.Applier{}}
}

// of returns the applier of a cluster under one identity.
func (a *appliers) of(view *cluster.Cluster) *apply.Applier {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found := a.byView[view]; found != nil {
		return found
	}
	name := view.Name().Name
	made := apply.New(view.Context(), view, apply.Options{Notify: func(o apply.Owner) { a.notify(name, o) }})
	a.byView[view] = made
	context.AfterFunc(view.Context(), func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.byView, view)
	})
	return made
}
