package reconcile_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/test/env"
)

// limit is how long a test waits for what should come at once.
const limit = env.Limit

func awaitKey(t *testing.T, woken <-chan string) string {
	t.Helper()
	select {
	case key := <-woken:
		return key
	case <-time.After(limit):
		require.Fail(t, "no job ended")
		return ""
	}
}

func newJobs(t *testing.T, width int) (*reconcile.Jobs[string, string], chan string) {
	t.Helper()
	woken := make(chan string, 16)
	return reconcile.NewJobs[string, string](t.Context(), width, func(key string) { woken <- key }, error.Error), woken
}

func returns(s string) func(context.Context) string {
	return func(context.Context) string { return s }
}

func TestJobs_endAsAnEventAndHandTheResultOverOnce(t *testing.T) {
	jobs, woken := newJobs(t, 1)
	_, done := jobs.Do("lane", "a", "1", returns("first"))
	assert.False(t, done, "nothing is waited for")
	assert.Equal(t, "a", awaitKey(t, woken))

	got, done := jobs.Do("lane", "a", "1", returns("second"))
	assert.True(t, done)
	assert.Equal(t, "first", got)

	_, done = jobs.Do("lane", "a", "1", returns("second"))
	assert.False(t, done, "a result is handed over once; asking again is new work")
}

func TestJobs_throwAwayTheResultOfAnotherInput(t *testing.T) {
	jobs, woken := newJobs(t, 1)
	jobs.Do("lane", "a", "old", returns("old"))
	awaitKey(t, woken)
	_, done := jobs.Do("lane", "a", "new", returns("new"))
	assert.False(t, done)
	awaitKey(t, woken)
	got, done := jobs.Do("lane", "a", "new", returns("never"))
	assert.True(t, done)
	assert.Equal(t, "new", got)
}

func TestJobs_aLaneThatHangsHoldsUpNobodyElse(t *testing.T) {
	jobs, woken := newJobs(t, 1)
	started, release := make(chan struct{}), make(chan struct{})
	hang := func(context.Context) string { close(started); <-release; return "late" }
	jobs.Do("dead", "a", "1", hang)
	<-started
	jobs.Do("dead", "b", "1", returns("behind a"))
	jobs.Do("alive", "c", "1", returns("done"))

	assert.Equal(t, "c", awaitKey(t, woken))
	assert.True(t, jobs.Running("b"), "a lane is as wide as it is")
	close(release)
	assert.ElementsMatch(t, []string{"a", "b"}, []string{awaitKey(t, woken), awaitKey(t, woken)})
}

// What a job waits for in the end keeps no other job waiting, but the process.
func TestJobs_settleOutsideOfTheirLane(t *testing.T) {
	drain := reconcile.NewDrain(limit)
	settling, settled := make(chan string), make(chan struct{})
	jobs, woken := newJobs(t, 1)
	jobs.DrainedBy(drain).Settling(func(_ context.Context, result string) {
		if result == "slow" {
			settling <- result
			<-settled
		}
	})
	jobs.Do("lane", "a", "1", returns("slow"))
	<-settling
	jobs.Do("lane", "b", "1", returns("fast"))
	assert.Equal(t, "b", awaitKey(t, woken), "the lane is free")
	_, done := jobs.Do("lane", "a", "1", returns("again"))
	assert.False(t, done, "it has not ended")

	stop, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan error, 1)
	go func() { ended <- drain.Start(stop) }()
	require.Eventually(t, drain.Draining, limit, time.Millisecond)
	assert.Empty(t, ended, "the process waits for it")
	close(settled)
	require.NoError(t, <-ended)
	assert.Equal(t, "a", awaitKey(t, woken))
	got, done := jobs.Do("lane", "a", "1", returns("again"))
	assert.True(t, done)
	assert.Equal(t, "slow", got)
}

func TestJobs_dropCancelsAndForgets(t *testing.T) {
	jobs, woken := newJobs(t, 1)
	started := make(chan struct{})
	jobs.Do("lane", "a", "1", func(ctx context.Context) string { close(started); <-ctx.Done(); return "cancelled" })
	<-started
	jobs.Drop("a")
	awaitKey(t, woken)
	_, done := jobs.Do("lane", "a", "1", returns("again"))
	assert.False(t, done, "what was dropped is not handed over")
}

// A panic in a job is the failure of that job: neither the process nor the lane ends with it.
func TestJobs_aPanicIsAFailure(t *testing.T) {
	jobs, woken := newJobs(t, 1)
	jobs.Do("lane", "a", "1", func(context.Context) string { var none *string; return *none })
	awaitKey(t, woken)
	got, done := jobs.Do("lane", "a", "1", returns("never"))
	assert.True(t, done)
	assert.Contains(t, got, "internal error: runtime error: invalid memory address")

	jobs.Do("lane", "b", "1", returns("next"))
	awaitKey(t, woken)
	got, _ = jobs.Do("lane", "b", "1", returns("never"))
	assert.Equal(t, "next", got, "the lane is free")
}

// A panic while a job settles is the failure of that job too, and the process does not wait for it.
func TestJobs_aPanicWhileSettlingIsAFailure(t *testing.T) {
	drain := reconcile.NewDrain(limit)
	jobs, woken := newJobs(t, 1)
	jobs.DrainedBy(drain).Settling(func(context.Context, string) { panic("while settling") })
	jobs.Do("lane", "a", "1", returns("done"))
	awaitKey(t, woken)
	got, done := jobs.Do("lane", "a", "1", returns("never"))
	assert.True(t, done)
	assert.Contains(t, got, "internal error: while settling")

	stop, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan error, 1)
	go func() { ended <- drain.Start(stop) }()
	require.NoError(t, env.Receive(t, ended, "the process waits for it"))
}
