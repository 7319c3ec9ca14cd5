package reconcile_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Whose jobs never end keeps no others waiting.
func TestJobs_nobodyTakesAllOfALane(t *testing.T) {
	jobs, woken := newJobs(t, 4)
	jobs.TakingTurns(func(key string) string { return key[:1] })
	begun := make(chan string, 16)
	hang := func(ctx context.Context) string { begun <- "a"; <-ctx.Done(); return "" }
	for i := range 8 {
		jobs.Do("lane", fmt.Sprint("a", i), "1", hang)
	}
	<-begun
	<-begun
	jobs.Do("lane", "b", "1", returns("done"))
	assert.Equal(t, "b", awaitKey(t, woken))
	assert.Empty(t, begun, "the others of a wait")
}
