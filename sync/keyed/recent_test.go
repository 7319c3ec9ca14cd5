package keyed_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/keyed"
)

// has returns which of some keys a map has, and the last one as that which was used last.
func has(r *keyed.Recent[string, int], keys ...string) (found []string) {
	for _, key := range keys {
		if _, ok := r.Lookup(key); ok {
			found = append(found, key)
		}
	}
	return found
}

func TestRecent_isBounded(t *testing.T) {
	r := keyed.NewRecent[string, int](10)
	assert.Empty(t, has(r, "a"))
	r.Put("a", 1, 4)
	r.Put("b", 2, 4)
	r.Put("a", 3, 4)
	r.Put("a", 4, 6)
	value, found := r.Lookup("a")
	assert.True(t, found)
	assert.Equal(t, 4, value, "the last one counts")
	assert.Equal(t, []string{"a", "b"}, has(r, "a", "b"), "nothing counts twice")

	has(r, "a", "b") // a was put last, and b is used last
	r.Put("c", 5, 1)
	assert.Equal(t, []string{"b", "c"}, has(r, "a", "b", "c"), "what was used least recently makes room")
	r.Put("large", 6, 11)
	assert.Equal(t, []string{"large"}, has(r, "a", "b", "c", "large"), "the latest stays, whatever it costs")
	r.Put("small", 7, 1)
	assert.Equal(t, []string{"small"}, has(r, "large", "small"))
}

func TestRecent_isClear(t *testing.T) {
	r := keyed.NewRecent[string, int](10)
	r.Put("a", 1, 10)
	r.Clear()
	assert.Zero(t, r.Len())
	assert.Empty(t, has(r, "a"))
	r.Put("b", 2, 5)
	r.Put("c", 3, 5)
	assert.Equal(t, []string{"b", "c"}, has(r, "b", "c"), "what is gone costs nothing")
}
