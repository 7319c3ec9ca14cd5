package applicationinstallation

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"waybill.dev/waybill/api/v1alpha1"
)

// awaited is what an installation waits for: another one, any of a definition, an ApplicationSnapshot, or who
// holds it.
type awaited struct {
	installation types.NamespacedName
	definition   string
	snapshot     types.NamespacedName
	holder       types.NamespacedName
}

// waits has the installations that wait for others, by what they wait for. Each pass that finds
// something to wait for says so before it looks, so that no change in between is missed.
type waits struct {
	mu  sync.Mutex
	who map[awaited]map[types.NamespacedName]struct{}
	on  map[types.NamespacedName][]awaited
}

func newWaits() *waits {
	return &waits{who: map[awaited]map[types.NamespacedName]struct{}{}, on: map[types.NamespacedName][]awaited{}}
}

// set replaces what an installation waits for; nothing if it does not.
func (w *waits) set(who types.NamespacedName, things ...awaited) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.on[who] {
		if delete(w.who[a], who); len(w.who[a]) == 0 {
			delete(w.who, a)
		}
	}
	if delete(w.on, who); len(things) > 0 {
		w.on[who] = things
	}
	for _, a := range things {
		if w.who[a] == nil {
			w.who[a] = map[types.NamespacedName]struct{}{}
		}
		w.who[a][who] = struct{}{}
	}
}

// of returns who waits for any of these.
func (w *waits) of(things ...awaited) []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	found := map[types.NamespacedName]struct{}{}
	for _, a := range things {
		maps.Copy(found, w.who[a])
	}
	return slices.Collect(maps.Keys(found))
}

// waiting returns a request for each installation that waits for this one.
func (d *driver) waiting(_ context.Context, o client.Object) []reconcile.Request {
	inst, ok := o.(*v1alpha1.ApplicationInstallation)
	if !ok {
		return nil
	}
	var requests []reconcile.Request
	for _, name := range d.waits.of(awaited{installation: client.ObjectKeyFromObject(inst)}, awaited{definition: inst.Spec.ApplicationRef.Name}) {
		requests = append(requests, reconcile.Request{NamespacedName: name})
	}
	return requests
}
