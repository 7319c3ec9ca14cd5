package reconcile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// P12
func TestProblems_fitIntoAStatus(t *testing.T) {
	assert.Nil(t, reconcile.Problems(nil), "what is empty is not written")
	id := manifest.ID{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "web", Name: "shop"}
	refused := manifest.Problem{ID: id, File: "a.yaml", Line: 3, Cluster: "east", Reason: "Refused", Message: strings.Repeat("a", 3000)}
	all := reconcile.Problems(append(make([]manifest.Problem, 49), refused, refused))
	require.Len(t, all, 50)
	got := all[49]
	assert.Len(t, got.Message, 2048)
	got.Message = ""
	assert.Equal(t, v1alpha1.Problem{
		ObjectReference: v1alpha1.ObjectReference{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "shop"},
		File:            "a.yaml", Line: 3, Cluster: "east", Reason: "Refused",
	}, got)
}
