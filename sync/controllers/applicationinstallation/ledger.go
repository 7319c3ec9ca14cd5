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
	// release is what is known of the Helm release: what its records are held against. altered says
	// that one is not as it was noted, until somebody was told.
	release *v1alpha1.ReleaseStatus
	altered string
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

// note keeps what an action has made of the release, and what it found altered.
func (l *ledger) note(release *v1alpha1.ReleaseStatus, altered string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if release != nil {
		l.release = release
	}
	if altered != "" {
		l.altered = altered
	}
}

// tell returns, once, what was found altered.
func (l *ledger) tell() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	altered := l.altered
	l.altered = ""
	return altered
}
