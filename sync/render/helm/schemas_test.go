package helm_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"

	"waybill.dev/waybill/sync/render/helm"
	"waybill.dev/waybill/sync/render/values/schema"
)

func withSchema(name, text string, subs ...*chart.Chart) *chart.Chart {
	c := &chart.Chart{Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: name, Version: "1.0.0"}}
	if text != "" {
		c.Schema = []byte(text)
	}
	c.SetDependencies(subs...)
	return c
}

// K48, K54: what admission refuses by the schemas of a chart, Helm refuses by them when it is rendered; and
// what Helm refuses for sure, admission does.
func TestSchemas_areThoseOfHelm(t *testing.T) {
	const port = `{"properties": {"port": {"type": "integer"}, "global": {"properties": {"zone": {"type": "integer"}}}}}`
	umbrella := withSchema("umbrella", `{"additionalProperties": false, "properties": {"replicas": {"type": "integer"}, "db": {}, "cache": {}, "main": {}, "loose": {}, "plain": {}, "global": {}}}`,
		withSchema("db", port), withSchema("cache", port), withSchema("mysql", port), withSchema("loose", port, withSchema("deep", port)), withSchema("plain", ""))
	umbrella.Values = map[string]any{"replicas": 1, "cache": map[string]any{"enabled": false}, "global": map[string]any{"zone": 1}}
	umbrella.Metadata.Dependencies = []*chart.Dependency{
		{Name: "db", Version: ">= 1"}, {Name: "cache", Version: "1.0.0", Condition: "cache.enabled"},
		{Name: "mysql", Version: "1.0.0", Alias: "main"}, {Name: "plain", Version: "1.0.0"},
	}
	encoded, err := helm.Schemas(umbrella).Encode()
	require.NoError(t, err)
	assert.NotContains(t, string(encoded), `"plain"}`, "a subchart without a schema is left out")
	compiled, err := schema.Compile(encoded)
	require.NoError(t, err)

	for values, refused := range map[string]bool{
		`{}`:                       false,
		`{"replicas": "x"}`:        true,
		`{"typo": 1}`:              true,
		`{"db": {"port": "x"}}`:    true,
		`{"cache": {"port": "x"}}`: false,
		`{"cache": {"port": "x", "enabled": true}}`:  true,
		`{"cache": {"port": "x", "enabled": false}}`: false,
		`{"main": {"port": "x"}}`:                    true,
		`{"loose": {"deep": {"port": "x"}}}`:         true,
		`{"db": {"global": {"zone": "x"}}}`:          false,
		`{"db": "x"}`:                                true,
		`{"plain": {"anything": 1}}`:                 false,
		`{"replicas": null}`:                         false,
	} {
		var parsed map[string]any
		require.NoError(t, json.Unmarshal([]byte(values), &parsed))
		found, err := compiled.Check(parsed)
		require.NoError(t, err)
		assert.Equal(t, refused, len(found) > 0, "%s: %v", values, found)
		_, err = helm.ValidateValues(umbrella, parsed)
		assert.Equal(t, refused, err != nil, "Helm, of %s: %v", values, fmt.Sprint(err))
	}
}
