package keyed_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/keyed"
)

func TestMap_keepsWhatIsPut(t *testing.T) {
	m := &keyed.Map[string, int]{}
	assert.Zero(t, m.Get("a"))
	assert.Equal(t, map[string]int{}, m.All(), "the caller may add to it")
	assert.Equal(t, 1, m.Of("a", func() int { return 1 }))
	assert.Equal(t, 1, m.Of("a", func() int { return 2 }), "it is there already")
	m.Put("b", 2)
	assert.Equal(t, map[string]int{"a": 1, "b": 2}, m.All())
	assert.ElementsMatch(t, []string{"a", "b"}, m.Keys())
	m.Drop("a")
	_, found := m.Lookup("a")
	assert.False(t, found)
	m.DropFunc(func(key string, value int) bool { return key == "b" && value == 2 })
	assert.Empty(t, m.All())
	m.Put("c", 3)
	assert.Equal(t, map[string]int{"c": 3}, m.Take())
	assert.Empty(t, m.Take(), "it was taken")
	m.Put("d", 4)
	assert.Equal(t, 4, m.Get("d"))
}

// A change sees what it changes, even if others change it at the same time.
func TestMap_changesAtomically(t *testing.T) {
	m := &keyed.Map[string, int]{}
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() { m.Change("a", func(n int) (int, bool) { return n + 1, true }) })
	}
	group.Wait()
	assert.Equal(t, 100, m.Change("a", func(int) (int, bool) { return 0, false }))
	assert.Empty(t, m.All(), "a change may drop the key")
}
