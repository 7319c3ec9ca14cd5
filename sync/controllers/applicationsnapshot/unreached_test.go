package applicationsnapshot_test

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/hook"
	"waybill.dev/waybill/test/hub"
)

// S94, S95: a node that cannot be reached for a moment, just as the post-hook is due, does not leave the application
// quiesced.
func TestSnapshot_releasesOnceTheNodeIsReached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.application("data")
	var refused atomic.Int32
	w.refuse(func(command []string) error {
		if slices.Contains(command, "echo unlock >>data/log") && refused.Add(1) <= 2 {
			return errors.New("dial tcp 192.0.2.1:10250: connect: connection refused")
		}
		return nil
	})
	s := hub.AwaitReady(w.World, w.take())
	assert.Equal(t, "lock unlock", w.sh("db-0", "cat data/log"))
	assert.Equal(t, int32(3), refused.Load(), "it was run until it succeeded, and no more")
	assert.Equal(t, v1alpha1.ConsistencyApplication, s.Status.Consistency)
	assert.Nil(t, s.Status.Error)
}

// S94: a post-hook that its container cannot run is not tried again, and the snapshot says so.
func TestSnapshot_endsAtOnceIfThePostHookCannotRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.application("data")
	var refused atomic.Int32
	w.refuse(func(command []string) error {
		if slices.Contains(command, "echo unlock >>data/log") {
			refused.Add(1)
			return fmt.Errorf("exec: %w: executable file not found in $PATH", hook.ErrNotRunnable)
		}
		return nil
	})
	failure := w.awaitFailed(w.take())
	assert.Equal(t, v1alpha1.PostHookFailedReason, failure.Reason)
	assert.Contains(t, failure.Message, "executable file not found")
	assert.Equal(t, int32(1), refused.Load())
}
