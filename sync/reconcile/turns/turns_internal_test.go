package turns

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Who has much to render does not keep others waiting for all of it.
func TestTurns_areTakenInTurn(t *testing.T) {
	all := New(1)
	require.True(t, all.TryAcquire("a"))
	names := []string{"a1", "a2", "a3", "b1", "b2", "c1"}
	waiting := map[string]chan struct{}{}
	for _, name := range names {
		waiting[name] = make(chan struct{})
		all.enter(name[:1], waiting[name])
	}
	assert.False(t, all.TryAcquire("a"))
	all.leave("b", waiting["b2"]) // who does not wait any longer
	var served []string
	for range names {
		all.Release("a")
		for _, name := range names {
			select {
			case <-waiting[name]:
				served = append(served, name)
				waiting[name] = nil
			default:
			}
		}
	}
	assert.Equal(t, "a1 b1 c1 a2 a3", strings.Join(served, " "))
	assert.Empty(t, all.waiting)
	assert.True(t, all.TryAcquire("a"), "what the last one gave back is free")
}

// A turn that comes when its waiter has gone goes to the next.
func TestTurns_areNotLost(t *testing.T) {
	all := New(1)
	require.NoError(t, all.Acquire(t.Context(), "a"))
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, all.Acquire(ended, "b"), context.Canceled)
	late, next := make(chan struct{}), make(chan struct{})
	all.enter("a", late)
	all.enter("b", next)
	all.Release("a")
	<-late
	all.leave("a", late)
	<-next
	all.Release("a")
	assert.True(t, all.TryAcquire("a"))
}

// Who takes turns and never gives them back leaves some to others, and these to others again.
func TestTurns_nobodyTakesAll(t *testing.T) {
	cases := map[int]string{1: "a", 2: "ab", 3: "aab", 10: "aaaaabbbcd"}
	for n, want := range cases {
		all := NewEven(n)
		var taken string
		for _, whom := range strings.Split("abcde", "") {
			for all.TryAcquire(whom) {
				taken += whom
			}
		}
		assert.Equal(t, want, taken)
		if n < 3 {
			continue // another turn would be the only one that they hold
		}
		first, later := make(chan struct{}), make(chan struct{})
		all.enter("a", first)
		all.enter("f", later)
		all.Release("a")
		select {
		case <-later:
		case <-first:
			require.Fail(t, "who has much comes before who has nothing")
		default:
			require.Fail(t, "what was given back is lost")
		}
	}
}
