package hook_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/data/hook"
)

// S70, C20
func TestTags(t *testing.T) {
	many := make([]string, 51)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d": "v"`, i)
	}
	for name, test := range map[string]struct {
		output string
		cut    bool
		want   map[string]string
		wrong  string
	}{
		"tags, with space around them":              {output: " {\"tags\": {\"mongo-version\": \"4.0\"}}\n", want: map[string]string{"mongo-version": "4.0"}},
		"other output is none of ours":              {output: "{ \"ok\" : 1 }\n"},
		"no output":                                 {},
		"text that mentions tags":                   {output: `added "tags"`},
		"values are text":                           {output: `{"tags": {"a": 1}}`, wrong: `did not print {"tags": {"KEY": "VALUE"}}`},
		"what is cut may be anything":               {output: `{"tags": {"a": "b"}}`, cut: true, wrong: "more than 65536 bytes"},
		"as many as an object can carry, not more":  {output: `{"tags": {` + strings.Join(many, ",") + `}}`, wrong: "51 are printed, at most 50 are allowed"},
		"keys are those of labels":                  {output: `{"tags": {"a b": "c"}}`, wrong: `invalid key "a b"`},
		"the longest value":                         {output: `{"tags": {"a": "` + strings.Repeat("x", 1024) + `"}}`, want: map[string]string{"a": strings.Repeat("x", 1024)}},
		"a long value":                              {output: `{"tags": {"a": "` + strings.Repeat("x", 1025) + `"}}`, wrong: `the value of "a" is longer than 1024 bytes`},
		"nested values are counted before decoding": {output: `{"tags": {}, "x": [` + strings.Repeat("0,", 300) + `0]}`, wrong: "tags: "},
	} {
		t.Run(name, func(t *testing.T) {
			tags, err := hook.Tags(hook.Result{Output: []byte(test.output), Cut: test.cut})
			if test.wrong != "" {
				assert.ErrorContains(t, err, test.wrong)
				return
			}
			assert.NoError(t, err)
			assert.Equal(t, test.want, tags)
		})
	}
}
