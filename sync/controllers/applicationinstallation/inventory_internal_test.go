package applicationinstallation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/manifest"
)

// K53, C41: a status that could not be written does not lose what was installed, whatever follows.
func TestKeepInventory_untilTheStatusIsWritten(t *testing.T) {
	one := manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: "team-a", Name: "one"}
	two := manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: "team-a", Name: "two"}
	d := &driver{inventories: &inventory.Store{}}
	x := &session{result: findings{inventory: []manifest.ID{one, two}}}
	x.deployed.set([]manifest.ID{one})
	// pass begins with what was last written.
	pass := func() *scope {
		inst := &v1alpha1.ApplicationInstallation{}
		inst.Status.Inventory = &v1alpha1.Inventory{Entries: inventory.Encode([]manifest.ID{one}), Count: 1}
		return &scope{inst: inst, session: x}
	}
	require.NoError(t, d.keepInventory(t.Context(), pass())) // and the status was not written

	require.NoError(t, d.keptInventory(t.Context(), pass()), "a pass that wrote something else")
	again := pass()
	require.NoError(t, d.keepInventory(t.Context(), again))
	assert.EqualValues(t, 2, again.inst.Status.Inventory.Count)

	x.result = findings{} // of an action that came to nothing
	again = pass()
	require.NoError(t, d.keepInventory(t.Context(), again))
	assert.EqualValues(t, 2, again.inst.Status.Inventory.Count)

	require.NoError(t, d.keptInventory(t.Context(), again))
	before := again.inst.Status.Inventory
	require.NoError(t, d.keepInventory(t.Context(), &scope{inst: again.inst, session: x}))
	assert.Same(t, before, again.inst.Status.Inventory, "it was written")
}
