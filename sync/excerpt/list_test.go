package excerpt_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/excerpt"
)

func TestLists_countWhatTheyLeaveOut(t *testing.T) {
	assert.Equal(t, "a, b", excerpt.Names([]string{"a", "b"}, 2))
	assert.Equal(t, "a, b and 2 more", excerpt.Names([]string{"a", "b", "c", "d"}, 2))
	assert.Empty(t, excerpt.Names(nil, 2))

	assert.Equal(t, "a; b", excerpt.Texts([]string{"a", "b"}, "; ", 2))
	assert.Equal(t, "a; b; and 2 more", excerpt.Texts([]string{"a", "b", "c", "d"}, "; ", 2))

	assert.Equal(t, " (and 2 more)", excerpt.AndMore(2))
	assert.Empty(t, excerpt.AndMore(0))
	assert.Empty(t, excerpt.AndMore(-1), "there was nothing at all")
}

func TestCount(t *testing.T) {
	assert.Equal(t, "0 objects", excerpt.Count(0, "object"))
	assert.Equal(t, "1 object", excerpt.Count(1, "object"))
	assert.Equal(t, "999 objects", excerpt.Count(999, "object"))
	assert.Equal(t, "20,000 objects", excerpt.Count(20000, "object"))
}
