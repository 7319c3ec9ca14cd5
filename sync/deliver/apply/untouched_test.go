package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What Helm wrote is untouched for as long as a watch shows it so: an upgrade does not read it again.
func TestKind_untouched(t *testing.T) {
	// later is what a watch shows at a version: the object with these fields of ours, last written at a time.
	later := func(version string, fields, stamp byte) *observed {
		o := seen(version, "u", fields)
		o.live.stamp = digest{stamp}
		return o
	}
	held := later("11", 2, 7)
	held.live.heldBy = "shop/rollback"
	theirs := later("11", 2, 7)
	theirs.live.owner = "another owner"
	cases := map[string]struct {
		reason string
		then   func(s *script)
		want   string
	}{
		"NotShownYet": {"the watch is behind", func(*script) {}, ""},
		"Shown":       {"it is as it was written", func(s *script) { s.put(s.feed, later("10", 2, 7)) }, "10"},
		"StatusOnly":  {"its controller has written the status", func(s *script) { s.put(s.feed, later("12", 2, 7)) }, "12"},
		"Edited":      {"another manager took a field", func(s *script) { s.put(s.feed, later("10", 2, 7)); s.put(s.feed, later("11", 3, 7)) }, ""},
		"Rewritten":   {"an action that failed has written it, and no other manager took a field", func(s *script) { s.put(s.feed, later("11", 2, 8)) }, ""},
		"Deleted":     {"it is gone", func(s *script) { s.put(s.feed, later("10", 2, 7)); s.drop(s.feed, later("11", 2, 7)) }, ""},
		"Recreated": {"it is another one", func(s *script) {
			other := later("11", 2, 7)
			other.live.uid = "v"
			s.put(s.feed, other)
		}, ""},
		"Held":      {"a rollback holds it", func(s *script) { s.put(s.feed, held) }, ""},
		"TakenOver": {"it is marked as another owner's", func(s *script) { s.put(s.feed, theirs) }, ""},
		"Watched":   {"it is still what was written", func(s *script) { s.put(s.feed, later("10", 2, 7)); s.baseline(name, s.holder, true) }, "10"},
		"Accepted": {"an edit is taken to be right, and Helm has not written that", func(s *script) {
			s.put(s.feed, later("10", 3, 7))
			s.baseline(name, s.holder, true)
		}, ""},
		"Restored": {"the API server went back in time", func(s *script) {
			s.put(s.feed, later("10", 2, 7))
			s.replace(s.feed, []*observed{later("3", 2, 7)}, "4")
		}, ""},
		"Lost":  {"no watch shows it any more", func(s *script) { s.put(s.feed, later("10", 2, 7)); s.feeds = map[string]*feed{} }, ""},
		"Other": {"another owner's Helm release wrote it since", func(s *script) { s.put(s.feed, later("10", 2, 7)); s.baselineOf(&holder{mark: "us"}) }, ""},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			s := newScript(t)
			_, _ = s.expect(name, s.holder, later("10", 2, 7).live)
			tc.then(s)
			assert.Equal(t, tc.want, s.untouchedAt(name, s.holder), tc.reason)
		})
	}
}

// What Watch takes to be right without knowing who wrote it is not vouched for.
func TestKind_foundIsNotUntouched(t *testing.T) {
	s := newScript(t)
	s.put(s.feed, seen("10", "u", 2))
	s.baseline(name, s.holder, true)
	assert.Empty(t, s.untouchedAt(name, s.holder))
}

// baselineOf lets another holder take the object over.
func (s *script) baselineOf(other *holder) { s.expect(name, other, seen("13", "u", 2).live) }
