package applicationinstallation

import (
	"slices"
	"sync"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply/inventory"
	"waybill.dev/waybill/sync/manifest"
)

// ledger lists what was installed, or is about to be. A job adds to it before it creates
// anything (C41), and the next one begins with it: whether anybody still waits for the result
// of the first makes no difference to what it left in the cluster.
type ledger struct {
	mu  sync.Mutex
	ids []manifest.ID
	// release is what is known of the Helm release: its records are checked against it.
	release *v1alpha1.ReleaseStatus
	// remarks are those that no event was recorded for yet.
	remarks []remark
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

// known returns what is known of the release; nil where nothing is. It is not to be changed.
func (l *ledger) known() *v1alpha1.ReleaseStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.release
}

// note keeps what an action has made of the release, and what is to be said of it.
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
