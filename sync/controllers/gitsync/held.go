package gitsync

import (
	"slices"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/hold"
)

// held returns the holds of a cluster that are known: those of the last delivery or, as long as this
// process has made none, those in the status.
func (s *scope) held(t *target) []v1alpha1.Hold {
	if t.state.Ended {
		return t.state.Result.Held
	}
	return slices.DeleteFunc(slices.Clone(s.gs.Status.Held), func(h v1alpha1.Hold) bool { return h.Cluster != t.name })
}

// reportHeld shows which objects are left as an ApplicationRollback has put them.
func (s *scope) reportHeld() {
	var all []v1alpha1.Hold
	for _, t := range s.targets() {
		for _, h := range s.held(t) {
			h.Cluster = t.name
			all = append(all, h)
		}
	}
	s.gs.Status.Held = hold.Sorted(all)
	hold.Mark(s.gs, s.gs.Status.Held)
}
