package turns_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/reconcile/turns"
)

func TestGroup_awaitsWhatIsUnderWay(t *testing.T) {
	cases := map[string]struct {
		reason string
		ends   time.Duration
		waits  time.Duration
	}{
		"ends":           {"nothing is left to wait for", time.Second, time.Second},
		"takes too long": {"the limit is over", time.Hour, time.Minute},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				group := turns.NewGroup()
				for range 2 {
					assert.True(t, group.Begin())
				}
				group.End()
				time.AfterFunc(c.ends, group.End)
				assert.False(t, group.Closed())
				group.Close()
				assert.True(t, group.Closed())
				assert.False(t, group.Begin(), "it is closed")
				began := time.Now()
				group.Await(time.Minute)
				assert.Equal(t, c.waits, time.Since(began), c.reason)
			})
		})
	}
}

// Await is called again after the first limit, and Close by more than one.
func TestGroup_staysClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		group := turns.NewGroup()
		began := time.Now()
		group.Await(time.Second)
		assert.Equal(t, time.Second, time.Since(began), "it is idle, and not closed")
		for range 2 {
			group.Close()
			group.Await(time.Minute)
		}
		assert.Equal(t, time.Second, time.Since(began))
	})
}
