package gitsync

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/delivery"
)

// C65: what was held before a start is known by the status, each cluster's own, until the first delivery.
func TestHeld_survivesARestart(t *testing.T) {
	in := func(cluster, name string) v1alpha1.Hold {
		return v1alpha1.Hold{Cluster: cluster, ObjectReference: v1alpha1.ObjectReference{Namespace: "shop", Kind: "ConfigMap", Name: name}, Rollback: "back", Wanted: "x"}
	}
	s := &scope{gs: &v1alpha1.GitSync{}, session: &session{targets: map[string]*target{}}}
	s.gs.Status.Held = []v1alpha1.Hold{in("berlin", "a"), in("dublin", "b")}
	berlin := &target{name: "berlin"}
	s.session.targets["berlin"] = berlin
	assert.Equal(t, []v1alpha1.Hold{in("berlin", "a")}, s.held(berlin))

	berlin.state = delivery.State{Ended: true, Result: apply.Result{Held: []v1alpha1.Hold{in("", "c")}}}
	s.reportHeld()
	assert.Equal(t, []v1alpha1.Hold{in("berlin", "c")}, s.gs.Status.Held, "a cluster that is left is forgotten")
}
