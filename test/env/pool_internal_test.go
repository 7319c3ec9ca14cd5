package env

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A pool stops what has waited longest, and only while more wait than there is room for beside those in use.
func TestPool_keepsNoMoreThanThereIsRoomFor(t *testing.T) {
	cases := map[string]struct {
		reason      string
		idle, inUse int
		stopped     int
	}{
		"few":      {"there is room for all", 3, 2, 0},
		"full":     {"there is room for as many", most - 4, 4, 0},
		"too many": {"the first two are in the way", most - 4, 6, 2},
		"all lent": {"those in use are never stopped", 0, most + 3, 0},
		"no room":  {"none may wait beside so many", 2, most, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			all := make([]*pooled, tc.idle)
			for i := range all {
				all[i] = &pooled{}
			}
			p := &Pool{idle: append([]*pooled(nil), all...), inUse: tc.inUse}
			var stopped []*pooled
			for c := p.surplus(); c != nil; c = p.surplus() {
				stopped = append(stopped, c)
			}
			assert.Len(t, stopped, tc.stopped, tc.reason)
			for i, c := range stopped {
				assert.Same(t, all[i], c, tc.reason)
			}
		})
	}
}
