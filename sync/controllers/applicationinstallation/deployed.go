package applicationinstallation

import (
	"slices"
	"sync"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/manifest"
)

// deployed lists what was installed, or is about to be. A job adds to it before it creates anything, and the next job starts from it: what the first one left in the cluster is listed whether
// or not a pass still waits for its result.
type deployed struct {
	mu  sync.Mutex
	ids []manifest.ID
	// release is what is known of the Helm release: its records are checked against it.
	release *v1alpha1.ReleaseStatus
	// remarks are those that no event was sent for yet.
	remarks []remark
}

// all returns a copy of the list.
func (d *deployed) all() []manifest.ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.ids)
}

// add adds to the list.
func (d *deployed) add(ids []manifest.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ids = inventory.Merge(d.ids, ids)
}

// set replaces the list.
func (d *deployed) set(ids []manifest.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ids = slices.Clone(ids)
}

// known returns what is known of the release; nil if nothing is. It must not be modified.
func (d *deployed) known() *v1alpha1.ReleaseStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.release
}

// note records what an action has made of the release, and the remarks on it. nil says that it made
// nothing of it, and a release without a name that there is none any more.
func (d *deployed) note(release *v1alpha1.ReleaseStatus, remarks ...remark) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case release == nil:
	case release.Name == "":
		d.release = nil
	default:
		d.release = release
	}
	d.remarks = append(d.remarks, remarks...)
}

// tell returns each remark once.
func (d *deployed) tell() []remark {
	d.mu.Lock()
	defer d.mu.Unlock()
	remarks := d.remarks
	d.remarks = nil
	return remarks
}
