package expansion_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/expansion"
)

func TestJSON_limitsValues(t *testing.T) {
	for reason, tc := range map[string]struct {
		text    string
		most    int
		allowed bool
	}{
		"as many as allowed": {`{"a":[1,2]}`, 4, true},
		"one more":           {`{"a":[1,2,3]}`, 4, false},
		"empty objects, which are small as text only": {`[` + strings.Repeat(`{},`, 10), 10, false},
		"what is in a string is one value":            {`["[{,:,:}]"]`, 1, true},
		"a quote that is escaped ends no string":      {`["\",,,,,,\\\",,,"]`, 1, true},
		"a backslash that is escaped escapes nothing": {`["\\",1,2]`, 2, false},
		"the default":           {`[` + strings.Repeat(`1,`, expansion.DefaultJSONValues) + `1]`, 0, false},
		"a text without values": {"", 1, true},
	} {
		err := expansion.JSON([]byte(tc.text), tc.most)
		_, read := io.ReadAll(expansion.JSONReader(iotest.OneByteReader(strings.NewReader(tc.text)), tc.most))
		if tc.allowed {
			require.NoError(t, err, reason)
			require.NoError(t, read, reason)
			continue
		}
		var tooMany *expansion.TooManyValuesError
		require.ErrorAs(t, err, &tooMany, reason)
		require.ErrorAs(t, read, &tooMany, reason)
	}
}

// FuzzJSON shows that no text has more values than were counted, wherever it is cut in two.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"\\\"{",{}],"b":null}`, `[[],[[]],"\u005b,"]`, `"\\"`, `tru`, `{"a`} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, text string, cut int) {
		var value any
		if json.Unmarshal([]byte(text), &value) != nil {
			t.Skip()
		}
		cut = min(max(cut, 0), len(text))
		parts := io.MultiReader(strings.NewReader(text[:cut]), strings.NewReader(text[cut:]))
		count := valuesIn(value)
		if count > 1 {
			require.Error(t, expansion.JSON([]byte(text), count-1))
		}
		read, err := io.ReadAll(expansion.JSONReader(parts, max(len(text), 1)))
		require.NoError(t, err)
		assert.Equal(t, text, string(read))
	})
}

// valuesIn returns how many values and keys are in a value, without itself. Of keys that are given twice
// only the last one is in it.
func valuesIn(value any) (count int) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			count += 1 + valuesIn(item)
		}
	case map[string]any:
		for _, item := range value {
			count += 2 + valuesIn(item)
		}
	}
	return count
}
