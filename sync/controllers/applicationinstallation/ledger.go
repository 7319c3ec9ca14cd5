package applicationinstallation

import (
	"slices"
	"sync"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply/inventory"
	"waybill.dev/waybill/sync/manifest"
)

// ledger lists what was installed, or is about to be. A job adds to it before it creates anything
// (C41), and the next job starts from it: what the first one left in the cluster is listed whether
// or not anybody still waits for its result.
type ledger struct {
	mu  sync.Mutex
	ids []manifest.ID
	// release is what is known of the Helm release: its records are checked against it.
	release *v1alpha1.ReleaseStatus
	// remarks are those that no event was sent for yet.
	remarks []remark
}

// all returns a copy of the list.
func (l *ledger) all() []manifest.ID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.ids)
}

// add adds to the list.
func (l *ledger) add(ids []manifest.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = inventory.Merge(l.ids, ids)
}

// set replaces the list.
func (l *ledger) set(ids []manifest.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = slices.Clone(ids)
}

// known returns what is known of the release; nil if nothing is. It must not be modified.
func (l *ledger) known() *v1alpha1.ReleaseStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.release
}

// note records what an action has made of the release, and the remarks on it.
func (l *ledger) note(release *v1alpha1.ReleaseStatus, remarks ...remark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if release != nil {
		l.release = release
	}
	l.remarks = append(l.remarks, remarks...)
}

// tell returns each remark once.
func (l *ledger) tell() []remark {
	l.mu.Lock()
	defer l.mu.Unlock()
	remarks := l.remarks
	l.remarks = nil
	return remarks
}
