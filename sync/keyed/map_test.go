package keyed_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	assert.Equal(t, map[string]int{"d": 4}, m.Replace(map[string]int{"e": 5}))
	assert.Equal(t, map[string]int{"e": 5}, m.All())
}

// What cannot be made is tried again.
func TestMap_keepsNothingOfAFailure(t *testing.T) {
	m := &keyed.Map[string, int]{}
	refused := errors.New("refused")
	_, err := m.Make("a", func() (int, error) { return 1, refused })
	require.ErrorIs(t, err, refused)
	assert.Empty(t, m.All())
	for made := range 2 {
		value, err := m.Make("a", func() (int, error) { return 2 + made, nil })
		require.NoError(t, err)
		assert.Equal(t, 2, value, "it is made once")
	}
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
