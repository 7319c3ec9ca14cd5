package isolated

import (
	"encoding/gob"
	"encoding/json"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPackMap_keepsValuesAsTheyAre(t *testing.T) {
	values := map[string]any{
		"": "no key", "none": nil, "yes": true, "no": false, "int": -1, "int64": int64(1), "uint64": uint64(1) << 63, "float": 1e6, "number": json.Number("1.50"),
		"list": []any{nil, []any{}, map[string]any{}, "x"}, "map": map[string]any{"a": map[string]any{"b": []any{map[string]any{"c": nil}}}, "z": ""},
	}
	for _, wanted := range []map[string]any{nil, {}, values} {
		p, err := packMap(wanted)
		require.NoError(t, err)
		from, to := io.Pipe()
		go func() { _ = gob.NewEncoder(to).Encode(recorded{Values: p}) }()
		var got recorded
		require.NoError(t, gob.NewDecoder(from).Decode(&got))
		assert.Equal(t, wanted, got.Values.unpackMap())
	}
	_, err := packMap(map[string]any{"a": struct{}{}})
	require.Error(t, err)
	broken := packed{{Kind: mapValue, Len: 3}, {Kind: listValue, Key: "a", Len: 5}, {Kind: textValue, Text: "b"}}
	assert.Equal(t, map[string]any{"a": []any{"b"}}, broken.unpackMap(), "what is missing is left out")
}

// Sending values takes as much memory as they are large, however deep they are nested.
func TestPackMap_takesDeepValues(t *testing.T) {
	var value any = strings.Repeat("x", 1<<20)
	for range 2000 {
		value = map[string]any{"a": value}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := packMap(value.(map[string]any))
	require.NoError(t, err)
	require.NoError(t, gob.NewEncoder(io.Discard).Encode(request{Chart: &chartRequest{Values: p}}))
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20))
}
