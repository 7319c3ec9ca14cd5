package delivery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
)

// C53: only what another field manager keeps changing or deleting is put off, and only alone.
func TestConflicts_due(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	fought := manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: "team", Name: "fought"}
	other := manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: "team", Name: "other"}
	cases := map[string]struct {
		reason  string
		change  apply.Change
		times   int
		drifted []manifest.ID
		due     time.Duration
		going   int
	}{
		"changed back":  {"it is a fight", apply.Change{Action: apply.Corrected}, 4, []manifest.ID{fought}, time.Second, 1},
		"made again":    {"so is this", apply.Change{Action: apply.Created, Again: true}, 4, []manifest.ID{fought}, time.Second, 1},
		"few":           {"a few may be chance", apply.Change{Action: apply.Corrected}, 3, []manifest.ID{fought}, 0, 0},
		"made":          {"what was not there before was deleted by nobody", apply.Change{Action: apply.Created}, 9, []manifest.ID{fought}, 0, 0},
		"what we wrote": {"commits are no fight", apply.Change{Action: apply.Configured}, 9, []manifest.ID{fought}, 0, 0},
		"another":       {"it does not wait for a fight about something else", apply.Change{Action: apply.Corrected}, 4, []manifest.ID{fought, other}, 0, 1},
		"something":     {"what did not drift is not fought for", apply.Change{Action: apply.Corrected}, 4, nil, 0, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := conflicts{}
			c.change.ID = fought
			for range c.times {
				f.note([]apply.Change{c.change}, now, func(int) time.Duration { return time.Second })
			}
			assert.Equal(t, c.due > 0, f.due(c.drifted).After(now), c.reason)
			if c.due > 0 {
				assert.Equal(t, c.due, f.due(c.drifted).Sub(now), c.reason)
			}
			names, _ := f.going(now)
			assert.Len(t, names, c.going, c.reason)
			f.note(nil, now.Add(time.Hour), nil)
			assert.Empty(t, f, "what is left in peace is forgotten")
		})
	}
}
