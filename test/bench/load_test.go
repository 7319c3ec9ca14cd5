package bench

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// step is one of many like actions, the i-th.
type step func(ctx context.Context, i int) error

// parallel calls do for 0 to n-1, with as many calls at a time as a floor has connections.
func parallel(n int, do func(int) error) error {
	var group errgroup.Group
	group.SetLimit(connections)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	return group.Wait()
}

// paced calls do for 0 to n-1 at a rate of perSecond, however long each call takes.
func paced(b *testing.B, n, perSecond int, do step) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), waitLimit)
	defer cancel()
	ticker := time.NewTicker(time.Second / time.Duration(perSecond))
	defer ticker.Stop()
	var group errgroup.Group
	for i := range n {
		<-ticker.C
		group.Go(func() error { return do(ctx, i) })
	}
	require.NoError(b, group.Wait())
}
