package dashboard

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/sync/render/values/schema"
)

// A schema is compiled once, and not for those who may not read it.
func TestCopiedSchema_isCompiledOnce(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	encoded, err := (&schema.Bundle{Schema: json.RawMessage(`{"properties": {"of-` + ns + `": {"writeOnly": true}}}`)}).Encode()
	require.NoError(t, err)
	packed, err := schema.Pack(encoded)
	require.NoError(t, err)
	digest := schema.Digest(encoded)
	held := schema.ConfigMap(ns, &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1"}}, map[string][]byte{digest: packed})
	require.NoError(t, create(t, api).Create(t.Context(), held))
	s, _, err := newLocal(t.Context(), fleet.NewHub("hub", api.RESTConfig()), ns)
	require.NoError(t, err)
	read := func(in *fleet.Cluster) (*schema.Schema, error) {
		return s.copiedSchema(t.Context(), fleet.NewPlace(in, in, ns, func(string, ...any) {}), "web", digest)
	}
	first, err := read(s.hub)
	require.NoError(t, err)
	again, err := read(s.hub)
	require.NoError(t, err)
	assert.Same(t, first, again)
	stranger, err := api.AddUser("stranger-" + ns)
	require.NoError(t, err)
	_, err = read(fleet.NewHub("hub", stranger))
	assert.ErrorContains(t, err, "get the schema")
}
