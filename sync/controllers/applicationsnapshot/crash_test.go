package applicationsnapshot_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// S95: a process that ends right after it has recorded any of the phases, or before what it writes next, leaves nothing
// quiesced, and the next process goes on.
func TestSnapshot_killedAtEachPhase(t *testing.T) {
	type killed struct {
		*world
		of   *v1alpha1.ApplicationSnapshot
		at   v1alpha1.SnapshotPhase
		what string
		dead *atomic.Bool
	}
	phases := []v1alpha1.SnapshotPhase{
		v1alpha1.SnapshotCapturing, v1alpha1.SnapshotQuiescing, v1alpha1.SnapshotCutting, v1alpha1.SnapshotReleasing,
		v1alpha1.SnapshotWaiting, v1alpha1.SnapshotBinding,
	}
	var all []killed
	for _, at := range phases {
		for _, after := range []bool{true, false} {
			k := killed{world: newWorld(t), at: at, dead: &atomic.Bool{}, what: fmt.Sprintf("killed at %s, right after: %t", at, after)}
			k.application("data")
			k.handle(dies(k.dead, at, after))
			k.of = k.take()
			all = append(all, k)
		}
	}
	for _, k := range all {
		require.True(t, k.Eventually(k.dead.Load), "not %s", k.what)
		require.True(t, k.Exists(k.of, k.of.Name))
		require.Equal(t, k.at, k.of.Status.Phase, k.what)
	}
	all[0].restart(func() {
		for _, k := range all {
			k.letBe()
		}
	})
	for _, k := range all {
		hub.Await(k.World, k.of, "not ended, "+k.what, func(s *v1alpha1.ApplicationSnapshot) bool { return s.Status.CompletionTime != nil })
		log := k.sh("db-0", "cat data/log || true")
		if k.of.Status.Phase == v1alpha1.SnapshotReady {
			assert.True(t, strings.HasPrefix(log, "lock unlock"), "%s: %s", k.what, log)
		} else if assert.NotNil(t, k.of.Status.Error, k.what) {
			assert.Equal(t, v1alpha1.HookInterruptedReason, k.of.Status.Error.Reason, "nothing else fails: %s", k.what)
		}
		assert.True(t, log == "" || strings.HasSuffix(log, "unlock"), "quiesced, %s: %s", k.what, log)
	}
}

// dies carries out writes until a phase is recorded: the process gets no further than that, or than to the next write
// after that.
func dies(dead *atomic.Bool, at v1alpha1.SnapshotPhase, right bool) func(context.Context, write) error {
	var recorded atomic.Bool
	die := func(ctx context.Context) error {
		dead.Store(true)
		<-ctx.Done()
		return ctx.Err()
	}
	return func(ctx context.Context, made write) error {
		if recorded.Load() {
			return die(ctx)
		}
		err := made.carryOut()
		if err == nil && made.phase == at {
			recorded.Store(true)
			if right {
				return die(ctx)
			}
		}
		return err
	}
}
