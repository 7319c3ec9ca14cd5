package applicationinstallation

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/manifest"
)

// An action that succeeds may have left something that users should know of.
func TestSaid(t *testing.T) {
	id := release.Identity{Namespace: "team-a", Name: "shop"}
	assert.Empty(t, said(id, nil, nil))

	kept := []release.Kept{{ID: manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: "team-a", Name: "data"}, Why: "helm.sh/resource-policy is keep"}}
	assert.Equal(t, []remark{{v1alpha1.ReleaseWarningReason,
		"release team-a/shop: unknown field spec.x; ConfigMap team-a/data stays: helm.sh/resource-policy is keep"}},
		said(id, []string{"unknown field spec.x"}, kept))

	long := said(id, []string{strings.Repeat("x", 2000)}, nil)
	require.Len(t, long, 1)
	assert.LessOrEqual(t, len(long[0].note), 1024, "an event with a longer note is refused")
}

// Each remark is reported once.
func TestDeployed_tellsOnce(t *testing.T) {
	l := &deployed{}
	l.note(nil, remark{"a", "one"}, remark{"b", "two"})
	l.note(nil, remark{"c", "three"})
	assert.Len(t, l.tell(), 3)
	assert.Empty(t, l.tell())
}

// C60: what was rendered for one identity is not run as another: it may hold hooks that were never tried.
func TestPlan_vouchesForItsOwnRecordsOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		made, acting string
		want         bool
		says         string
	}{
		"Waybill itself":      {"", "", true, ""},
		"the same account":    {"deployer", "deployer", true, ""},
		"no account any more": {"deployer", "", false, "was made as ServiceAccount team-a/deployer"},
		"an account now":      {"", "deployer", false, "was made as Waybill itself"},
		"another account":     {"deployer", "other", false, "was made as ServiceAccount team-a/deployer"},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan{inst: &v1alpha1.ApplicationInstallation{}, deployed: &deployed{}}
			p.inst.Namespace, p.resolved.ServiceAccountName = "team-a", tc.made
			p.deployed.note(noted(p, release.Result{Release: v1alpha1.ReleaseStatus{Name: "shop", Revision: 2, RecordDigest: "d"}}))
			p.resolved.ServiceAccountName = tc.acting
			assert.Equal(t, tc.want, identity(p).Known != nil)
			if !tc.want {
				assert.Contains(t, altered(p, []int{2}, "it was not used")[0].note, tc.says)
			}
		})
	}
}
