package reconcile

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Of two that ask at once, the later overwrites what the earlier waits for.
func TestHandles(t *testing.T) {
	const own = "2026-01-02T03:04:05.6Z"
	for handled, want := range map[string]bool{
		"":                         false,
		own:                        true,
		"2026-01-02T03:04:05.61Z":  true,
		"2026-01-02T03:04:05.599Z": false,
		"by hand":                  false,
	} {
		assert.Equal(t, want, handles(handled, own), handled)
	}
	assert.True(t, handles("by hand", "by hand"))
}
