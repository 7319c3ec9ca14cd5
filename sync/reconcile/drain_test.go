package reconcile_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/reconcile"
)

// drained returns jobs that a drain lets end, and what starts its end.
func drained(t *testing.T, grace time.Duration) (jobs *reconcile.Jobs[string, string], woken chan string, stop func() (ended <-chan struct{})) {
	t.Helper()
	drain := reconcile.NewDrain(grace)
	woken = make(chan string, 16)
	jobs = reconcile.NewJobs[string, string](drain.Context(), 4, func(key string) { woken <- key }, error.Error).DrainedBy(drain)
	stop = func() <-chan struct{} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			assert.NoError(t, drain.Start(ctx))
		}()
		return ended
	}
	return jobs, woken, stop
}

func await(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(limit):
		t.Fatal(what)
	}
}

func TestDrain_letsWhatRunsComeToItsEnd(t *testing.T) {
	jobs, woken, stop := drained(t, limit)
	running, finish := make(chan struct{}), make(chan struct{})
	jobs.Do("lane", "a", "1", func(ctx context.Context) string {
		close(running)
		<-finish
		assert.NoError(t, ctx.Err(), "it is not told to end")
		return "result"
	})
	await(t, "the job never ran", running)
	ended := stop()
	assert.Never(t, func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}, 50*time.Millisecond, 5*time.Millisecond, "the process waits")

	close(finish)
	await(t, "the process waits for nothing", ended)
	got, done := jobs.Do("lane", "a", "1", nil)
	assert.True(t, done)
	assert.Equal(t, "result", got)
	assert.LessOrEqual(t, len(woken), 1)
}

func TestDrain_beginsNothingAnew(t *testing.T) {
	jobs, woken, stop := drained(t, limit)
	running, finish := make(chan struct{}), make(chan struct{})
	jobs.Do("lane", "last", "1", func(context.Context) string {
		close(running)
		<-finish
		return ""
	})
	await(t, "the job never ran", running)
	ended := stop()
	var begun atomic.Int32
	work := func(context.Context) string { begun.Add(1); return "" }
	asked := time.Now()
	for round := int32(0); begun.Load() == round; round++ { // until the drain has started
		require.Less(t, time.Since(asked), limit, "jobs go on beginning")
		jobs.Do("lane", "a", fmt.Sprint(round), work)
		for jobs.Running("a") {
			runtime.Gosched()
		}
		if begun.Load() > round {
			awaitKey(t, woken)
		}
	}
	jobs.Do("lane", "a", "last", work)
	assert.Never(t, func() bool { return len(woken) > 0 }, 50*time.Millisecond, 5*time.Millisecond,
		"what cannot begin is not asked for again and again")
	close(finish)
	await(t, "the process waits for nothing", ended)
}

func TestDrain_tellsToEndWhatTakesTooLong(t *testing.T) {
	jobs, _, stop := drained(t, time.Millisecond)
	running := make(chan struct{})
	recorded := false
	jobs.Do("lane", "a", "1", func(ctx context.Context) string {
		close(running)
		<-ctx.Done()
		recorded = true
		return ""
	})
	await(t, "the job never ran", running)
	await(t, "the process never ends", stop())
	assert.True(t, recorded, "it could record how far it came")
}
