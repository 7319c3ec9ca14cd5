package reconcile

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Who drops a job may be gone when it ends: its result, which may be large, is not kept.
func TestJobs_keepNothingOfWhatWasDropped(t *testing.T) {
	started, woken := make(chan struct{}), make(chan struct{})
	jobs := NewJobs[string, string](t.Context(), 1, func(string) { close(woken) }, error.Error)
	jobs.Do("lane", "a", "1", func(ctx context.Context) string { close(started); <-ctx.Done(); return "large" })
	<-started
	jobs.Drop("a")
	<-woken
	jobs.mu.Lock()
	defer jobs.mu.Unlock()
	assert.Empty(t, jobs.jobs)
	assert.Empty(t, jobs.lanes)
}
