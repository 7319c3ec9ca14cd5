package isolated

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/render"
)

// Who has much to render does not keep others waiting for all of it.
func TestTurns_areTakenInTurn(t *testing.T) {
	all := newTurns(1)
	require.True(t, all.tryAcquire())
	names := []string{"a1", "a2", "a3", "b1", "b2", "c1"}
	waiting := map[string]chan struct{}{}
	for _, name := range names {
		waiting[name] = make(chan struct{})
		all.enter(name[:1], waiting[name])
	}
	assert.False(t, all.tryAcquire())
	all.leave("b", waiting["b2"]) // who does not wait any longer
	var served []string
	for range names {
		all.release()
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
	assert.True(t, all.tryAcquire(), "what the last one gave back is free")
}

// A turn that comes when nobody waits for it any more goes to the next.
func TestTurns_areNotLost(t *testing.T) {
	all := newTurns(1)
	require.NoError(t, all.acquire(t.Context()))
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, all.acquire(ended), context.Canceled)
	late, next := make(chan struct{}), make(chan struct{})
	all.enter("a", late)
	all.enter("b", next)
	all.release()
	<-late
	all.leave("a", late)
	<-next
	all.release()
	assert.True(t, all.tryAcquire())
}

// Whoever writes a GitSync says how long its kustomization may take, but not that it may take the turns of
// others for ever.
func TestBuilder_endsABuildThatTakesLong(t *testing.T) {
	b := NewBuilder(Options{Time: time.Second})
	for own, limit := range map[time.Duration]string{1000 * time.Hour: "1s", 500 * time.Millisecond: "500ms"} {
		_, _, err := b.Build(render.On(t.Context(), render.Terms{For: "a", Time: own}), endless(), ".")
		require.ErrorContains(t, err, "the build takes longer than it may ("+limit+")")
	}
	b.time = DefaultTime // a new process may take more than a second on a busy machine
	objects, _, err := b.Build(t.Context(), fstest.MapFS{"kustomization.yaml": {Data: []byte("configMapGenerator: [{name: a}]")}}, ".")
	require.NoError(t, err)
	assert.Len(t, objects, 1)
}
