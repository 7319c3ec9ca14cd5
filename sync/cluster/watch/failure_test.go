package watch

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOlder(t *testing.T) {
	assert.True(t, Older("9", "10"))
	assert.False(t, Older("10", "9"))
	assert.False(t, Older("10", "10"))
	assert.False(t, Older("", "10"), "what is no number is not older")
	assert.False(t, Older("a", "b"))
}
