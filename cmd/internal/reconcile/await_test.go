package reconcile

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Of two that ask at once, the later overwrites what the earlier waits for. Their clocks need not
// agree.
func TestAnswers(t *testing.T) {
	const own, others = "2026-01-02T03:04:05.6Z", "2026-01-02T03:00:00Z"
	for reason, tc := range map[string]struct {
		handled, annotated string
		want               bool
	}{
		"nothing was handled yet":                {"", own, false},
		"ours was":                               {own, own, true},
		"ours was, and another has been written": {own, others, true},
		"one from before ours":                   {others, own, false},
		"one that has replaced ours":             {others, others, true},
		"one by hand that has replaced ours":     {"now", "now", true},
		"ours was replaced, by one to come":      {"2026-01-02T02:00:00Z", others, false},
		"the annotation was removed":             {others, "", false},
	} {
		assert.Equal(t, tc.want, answers(tc.handled, tc.annotated, own), reason)
	}
}
