package cluster_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/cluster"
)

func TestEngaged_holdsAValueUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, holdUntilTheEnd)
}

func holdUntilTheEnd(t *testing.T) {
	var e cluster.Engaged[string, *int]
	assert.Nil(t, e.Get("a"))
	assert.Empty(t, e.All())

	first, end := context.WithCancel(t.Context())
	one, two, three := new(int), new(int), new(int)
	e.Put(first, "a", one)
	e.Put(t.Context(), "b", two)
	assert.Same(t, one, e.Get("a"))
	assert.ElementsMatch(t, []*int{one, two}, e.All())

	end()
	assert.Nil(t, e.Get("a"), "at once")
	assert.Equal(t, []*int{two}, e.All())
	e.Put(t.Context(), "a", three)
	synctest.Wait()
	assert.Same(t, three, e.Get("a"), "the end of an earlier value takes nothing from a later one")

	e.Put(first, "a", one)
	assert.Same(t, three, e.Get("a"), "what has ended comes too late")
	synctest.Wait()
	assert.ElementsMatch(t, []*int{two, three}, e.All())
}

func TestEngaged_buildsOneValuePerKey(t *testing.T) {
	var e cluster.Engaged[string, *int]
	builds := 0
	build := func() *int { builds++; return new(int) }
	ctx, end := context.WithCancel(t.Context())
	built := e.Of(ctx, "a", build)
	require.Same(t, built, e.Of(ctx, "a", build))
	assert.Equal(t, 1, builds)
	end()
	assert.NotSame(t, built, e.Of(t.Context(), "a", build), "what has ended is built anew")
}
