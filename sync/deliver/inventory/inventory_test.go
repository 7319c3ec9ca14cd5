package inventory_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/manifest"
)

var (
	web  = manifest.ID{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web"}
	shop = manifest.ID{Version: "v1", Kind: "Namespace", Name: "shop"}
	role = manifest.ID{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "system:auth_delegator_5"}
)

func TestEncode_form(t *testing.T) {
	assert.Equal(t, []v1alpha1.InventoryEntry{
		{ID: "_shop__Namespace", Version: "v1"},
		{ID: "_system:auth%5Fdelegator%5F5_rbac.authorization.k8s.io_ClusterRole", Version: "v1"},
		{ID: "shop_web_apps_Deployment", Version: "v1"},
	}, inventory.Encode([]manifest.ID{web, shop, role}), "sorted by id, whatever the order")
}

func TestEncode_oneEntryPerObject(t *testing.T) {
	older := web
	older.Version = "v1beta1"
	assert.Equal(t, []v1alpha1.InventoryEntry{{ID: "shop_web_apps_Deployment", Version: "v1"}}, inventory.Encode([]manifest.ID{older, web}))
}

func TestDecode_roundTrip(t *testing.T) {
	want := []manifest.ID{shop, web}
	got, err := inventory.Decode(inventory.Encode(want))
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

func TestDecode_keepsWhatItCanRead(t *testing.T) {
	for _, bad := range []string{"", "nonsense", "a_b_c", "a__c_d", "a_b_c_", "a_b_c_d_e"} {
		got, err := inventory.Decode([]v1alpha1.InventoryEntry{{ID: bad}, {ID: "shop_web_apps_Deployment", Version: "v1"}})
		require.Error(t, err, bad)
		assert.Contains(t, err.Error(), `"`+bad+`"`)
		assert.Equal(t, []manifest.ID{web}, got)
	}
}

func TestDiff_ignoresVersions(t *testing.T) {
	older := web
	older.Version = "v1beta1"
	assert.Equal(t, []manifest.ID{shop}, inventory.Diff([]manifest.ID{shop, older}, []manifest.ID{web}))
	assert.Empty(t, inventory.Diff(nil, []manifest.ID{web}))
}

func TestMerge(t *testing.T) {
	older := web
	older.Version = "v1beta1"
	assert.Equal(t, []manifest.ID{web, shop}, inventory.Merge([]manifest.ID{older, shop}, []manifest.ID{web}))
}

func FuzzID(f *testing.F) {
	f.Add("shop", "web", "apps", "Deployment")
	f.Add("", "system:a_b__c", "rbac.authorization.k8s.io", "ClusterRole")
	f.Fuzz(func(t *testing.T, namespace, name, group, kind string) {
		valid := func(s string, forbidden ...rune) bool {
			return !slices.ContainsFunc([]rune(s), func(r rune) bool { return slices.Contains(forbidden, r) })
		}
		if name == "" || kind == "" || !valid(namespace, '_') || !valid(group, '_') || !valid(kind, '_') || !valid(name, '%', '/') {
			return // the API server accepts no such object
		}
		want := manifest.ID{Namespace: namespace, Name: name, Group: group, Version: "v1", Kind: kind}
		got, err := inventory.Decode(inventory.Encode([]manifest.ID{want}))
		require.NoError(t, err)
		assert.Equal(t, []manifest.ID{want}, got)
	})
}
