package reconcile_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/reconcile"
)

// C53: who changes or deletes something again and again is answered ever more slowly.
func TestDriftConflict_slowsDown(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	backoff := func(n int) time.Duration { return time.Second << n }
	cases := map[string]struct {
		reason string
		// corrections come one by one, this many seconds after begin.
		corrections []int
		going       bool
		pause       time.Duration
	}{
		"Few":          {reason: "a few may be chance", corrections: []int{0, 1, 2}},
		"Conflict":     {reason: "the fourth is followed by a pause", corrections: []int{0, 1, 2, 3}, going: true, pause: 2 * time.Second},
		"LongConflict": {reason: "which grows", corrections: []int{0, 1, 2, 3, 5}, going: true, pause: 4 * time.Second},
		"Endless":      {reason: "up to a minute", corrections: []int{0, 1, 2, 3, 5, 9, 17, 33, 65, 125}, going: true, pause: time.Minute},
		"NowAndThen":   {reason: "what happens every few minutes is no conflict", corrections: []int{0, 121, 242, 363, 484}},
		"NewConflict":  {reason: "one that is over does not count", corrections: []int{0, 1, 2, 3, 200}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, now := &reconcile.DriftConflict{}, begin
			assert.False(t, f.Going(now))
			for _, after := range tc.corrections {
				now = begin.Add(time.Duration(after) * time.Second)
				f.Corrected(now, backoff)
			}
			assert.Equal(t, tc.going, f.Going(now), tc.reason)
			assert.Equal(t, tc.pause, f.Due().Sub(now), tc.reason)
			assert.False(t, f.Going(f.Over()), "it is over after a while of peace")
		})
	}
}
