package helm_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/render/helm"
)

type values = map[string]any

// C26, K25, K39, K48
func TestMergeValues(t *testing.T) {
	cases := map[string]struct {
		reason string
		layers []values
		want   values
	}{
		"Nothing":     {"no layers, no values", nil, values{}},
		"LaterWins":   {"a later scalar wins", []values{{"a": 1, "b": 1}, {"a": 2}}, values{"a": 2, "b": 1}},
		"MapsMerge":   {"key by key, however deep", []values{{"a": values{"x": values{"p": 1}}}, {"a": values{"x": values{"q": 2}, "y": 3}}}, values{"a": values{"x": values{"p": 1, "q": 2}, "y": 3}}},
		"ListReplace": {"lists are one value", []values{{"a": []any{1, 2}}, {"a": []any{3}}}, values{"a": []any{3}}},
		"TypeChange":  {"a map replaces a scalar, and the other way round", []values{{"a": 1, "b": values{"x": 1}}, {"a": values{"x": 1}, "b": 1}}, values{"a": values{"x": 1}, "b": 1}},
		"NullStays":   {"it deletes the chart's default, which is not here", []values{{"a": values{"x": 1}}, {"a": nil}}, values{"a": nil}},
		"NullInMap":   {"inside a map too", []values{{"a": values{"x": 1, "y": 2}}, {"a": values{"x": nil}}}, values{"a": values{"x": nil, "y": 2}}},
		"NilLayer":    {"a layer that is not there", []values{{"a": 1}, nil}, values{"a": 1}},
		"FourLayers":  {"definition, version, installation", []values{{"a": 1}, {"a": 2, "b": 2}, {"b": 3}, {}}, values{"a": 2, "b": 3}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, helm.MergeValues(tc.layers...), tc.reason)
		})
	}
}

func TestMergeValues_sharesNothing(t *testing.T) {
	lower, upper := values{"a": values{"l": []any{values{"x": 1}}}}, values{"b": values{}}
	merged := helm.MergeValues(lower, upper)
	merged["a"].(values)["l"].([]any)[0].(values)["x"] = 2
	merged["b"].(values)["y"] = 1
	assert.Equal(t, values{"a": values{"l": []any{values{"x": 1}}}}, lower)
	assert.Equal(t, values{"b": values{}}, upper)
}
