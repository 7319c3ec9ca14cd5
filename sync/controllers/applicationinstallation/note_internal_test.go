package applicationinstallation

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/release"
)

// An action that succeeds may have left something that somebody should know of.
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

// Each remark is told once.
func TestDeployed_tellsOnce(t *testing.T) {
	l := &deployed{}
	l.note(nil, remark{"a", "one"}, remark{"b", "two"})
	l.note(nil, remark{"c", "three"})
	assert.Len(t, l.tell(), 3)
	assert.Empty(t, l.tell())
}
