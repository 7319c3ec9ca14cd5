package intake_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/webhooks/intake"
)

func TestBudget_isShared(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	b := intake.NewBudget(100)
	first, err := b.Acquire(ended, 60)
	require.NoError(t, err, "there is room, so that no request waits")
	_, err = b.Acquire(ended, 60)
	require.ErrorIs(t, err, intake.ErrBusy)
	small, err := b.Acquire(ended, 40)
	require.NoError(t, err, "who gave up takes no room")
	small()

	second := make(chan error, 1)
	go func() {
		release, err := b.Acquire(t.Context(), 60)
		if err == nil {
			release()
		}
		second <- err
	}()
	first()
	require.NoError(t, <-second, "who waits has a turn when others have ended")

	all, err := b.Acquire(ended, 1000)
	require.NoError(t, err, "what is larger than the budget has all of it")
	_, err = b.Acquire(ended, 1)
	require.ErrorIs(t, err, intake.ErrBusy)
	all()
}

// Even waiting takes memory.
func TestBudget_letsNotEverybodyWait(t *testing.T) {
	const most = 1000
	b := intake.NewBudget(1)
	release, err := b.Acquire(t.Context(), 1)
	require.NoError(t, err)
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	answers := make(chan error, most+1)
	for range most + 1 {
		go func() {
			_, err := b.Acquire(ctx, 1)
			answers <- err
		}()
	}
	require.ErrorIs(t, <-answers, intake.ErrBusy, "one too many")
	require.NoError(t, ctx.Err(), "it was told at once")
	cancel()
	for range most {
		assert.ErrorIs(t, <-answers, intake.ErrBusy)
	}
}
