package applicationinstallation

import (
	"slices"
	"sync"

	"waybill.dev/waybill/sync/apply/inventory"
	"waybill.dev/waybill/sync/manifest"
)

// ledger lists what was installed, or is about to be. A job adds to it before it creates
// anything (C41), and the next one begins with it: whether anybody still waits for the result
// of the first makes no difference to what it left in the cluster.
type ledger struct {
	mu  sync.Mutex
	ids []manifest.ID
}

// all returns what is listed.
func (l *ledger) all() []manifest.ID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.ids)
}

// add lists more.
func (l *ledger) add(ids []manifest.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = inventory.Merge(l.ids, ids)
}

// set lists nothing else.
func (l *ledger) set(ids []manifest.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = slices.Clone(ids)
}
