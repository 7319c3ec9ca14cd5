package reconcile_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/reconcile"
)

func TestBell_untilWaitsForWhatIsNotified(t *testing.T) {
	cases := map[string]struct {
		reason string
		rings  []string
		done   int // how often it is asked until it is done
		ends   bool
		took   time.Duration
	}{
		"Done":      {"nothing is waited for", nil, 1, false, 0},
		"Rung":      {"each notification is looked at", []string{"a", "a"}, 3, false, 2 * time.Second},
		"Other":     {"the notification is for another", []string{"b", "b"}, 2, false, time.Minute},
		"Never":     {"it is done never, and the limit is over", []string{"a"}, 9, false, time.Minute},
		"Cancelled": {"whoever waits has ended", nil, 2, true, 30 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bell, asked, began := reconcile.NewBell[string](), 0, time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				for i, key := range tc.rings {
					time.AfterFunc(time.Duration(i+1)*time.Second, func() { bell.Ring(key) })
				}
				if tc.ends {
					time.AfterFunc(30*time.Second, cancel)
				}
				bell.Until(ctx, "a", time.Minute, func() bool { asked++; return asked == tc.done })
				assert.Equal(t, tc.took, time.Since(began), tc.reason)
			})
		})
	}
}
