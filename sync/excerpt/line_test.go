package excerpt_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/excerpt"
)

func TestLine_keepsTheCause(t *testing.T) {
	for name, c := range map[string]struct{ text, want, reason string }{
		"one line":   {"no such  host", "no such  host", "what is one line is left alone"},
		"registry":   {"fetch x: errors:\ndenied: no pull\nunauthorized: log in\n", "fetch x: errors: denied: no pull; unauthorized: log in", "the cause begins after the headline"},
		"bullets":    {"1 error occurred:\n\t* web: Invalid value\n\n", "1 error occurred: web: Invalid value", "lists have bullets"},
		"schema":     {"values don't fit:\r\nweb:\r\n- (root): a is required\r\n- b: Invalid type", "values don't fit: web: (root): a is required; b: Invalid type", "lines may end as on Windows"},
		"sentences":  {"it failed.\nTry again", "it failed. Try again", "a sentence has ended already"},
		"tabs":       {"a\tb", "a b", "tabs would be columns of a table"},
		"empty":      {"\n \n", "", "there is nothing in it"},
		"other text": {"größer\nals", "größer; als", "runes stay whole"},
	} {
		assert.Equal(t, c.want, excerpt.Line(c.text), "%s: %s", name, c.reason)
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a:\n* b\r\n\tc")
	f.Fuzz(func(t *testing.T, text string) {
		got := excerpt.Line(text)
		assert.False(t, strings.ContainsAny(got, "\n\r\f\v\t"), "%q", got)
		assert.Equal(t, got, excerpt.Line(got), "one line stays as it is")
	})
}
