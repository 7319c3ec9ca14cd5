package apply

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/health"
)

// What Helm wrote is compared with what it wrote, however late a watch shows that: neither is its
// arrival drift, nor is the health of what it replaced its own.
func TestKind_written(t *testing.T) {
	healthy := func(version string, fields byte) *observed {
		o := seen(version, "u", fields)
		o.live.status = health.Current
		return o
	}
	theirs := healthy("11", 2)
	theirs.live.owner = "somebody else"
	none := func(*script, *record) {}
	miss := func(s *script, r *record) { s.applier.miss(map[recordKey]*record{{s.kind, name}: r}) }
	const behind, right, wrong = unseen, asApplied, drifted
	cases := map[string]struct {
		reason string
		before *observed
		then   func(s *script, awaited *record)
		want   condition
		status health.Status
	}{
		"NotShownYet":     {"the watch is behind a creation", nil, none, behind, health.InProgress},
		"OldShown":        {"the watch is behind an update", healthy("9", 1), none, behind, health.InProgress},
		"ShownAtOnce":     {"the watch is as fast as the answer", healthy("10", 2), none, right, health.Current},
		"ShownLater":      {"it arrives", nil, func(s *script, _ *record) { s.put(s.feed, healthy("10", 2)) }, right, health.Current},
		"StatusOnly":      {"its controller was faster than the watch", healthy("9", 1), func(s *script, _ *record) { s.put(s.feed, healthy("12", 2)) }, right, health.Current},
		"EarlierShown":    {"somebody changed it before", healthy("7", 1), func(s *script, _ *record) { s.put(s.feed, healthy("8", 5)) }, behind, health.InProgress},
		"EarlierGone":     {"one of that name was there before", healthy("7", 1), func(s *script, _ *record) { s.drop(s.feed, seen("8", "u", 1)) }, behind, health.InProgress},
		"Edited":          {"somebody takes a field", nil, func(s *script, _ *record) { s.put(s.feed, healthy("10", 2)); s.put(s.feed, healthy("11", 3)) }, wrong, health.Current},
		"Deleted":         {"it goes after it was shown", nil, func(s *script, _ *record) { s.put(s.feed, healthy("10", 2)); s.drop(s.feed, seen("11", "u", 2)) }, wrong, health.NotFound},
		"EditedBefore":    {"somebody takes a field before the watch begins", healthy("11", 3), none, wrong, health.Current},
		"EditedMeanwhile": {"the watch shows the edit first", nil, func(s *script, _ *record) { s.put(s.feed, healthy("11", 3)) }, wrong, health.Current},
		"TakenOver":       {"somebody puts a mark of their own on it", nil, func(s *script, _ *record) { s.put(s.feed, theirs) }, wrong, health.Unknown},
		"NeverShown":      {"it was deleted the moment it was written", nil, miss, wrong, health.NotFound},
		"MissedTooLate":   {"it arrived in time", nil, func(s *script, r *record) { s.put(s.feed, healthy("10", 2)); miss(s, r) }, right, health.Current},
		"WrittenAgain":    {"what is missed is the first, what is awaited the second", nil, func(s *script, r *record) { s.expect(name, s.holder, seen("11", "u", 2).live); miss(s, r) }, behind, health.InProgress},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			s := newScript(t)
			if tc.before != nil {
				s.put(s.feed, tc.before)
			}
			awaited, is := s.expect(name, s.holder, seen("10", "u", 2).live)
			told := len(s.told)
			tc.then(s, awaited)
			item, condition := s.observe(name, s.holder)
			assert.Equal(t, tc.want, condition, tc.reason)
			assert.Equal(t, tc.status, item.Status, tc.reason)
			assert.Equal(t, tc.want == wrong, is == drifted || len(s.told) > told, "drift is told, and nothing else")
		})
	}
}

func TestKind_writtenIsToldOnceItIsShown(t *testing.T) {
	s := newScript(t)
	s.holder.health.Store(true)
	old, now := seen("9", "u", 1), seen("10", "u", 2)
	old.live.status, now.live.status = health.Current, health.Current
	s.put(s.feed, old)
	s.expect(name, s.holder, seen("10", "u", 2).live)
	s.put(s.feed, now)
	assert.Len(t, s.told, 1, "until then its health was in progress, although the watch says the same before and after")
}

// What Helm wrote is compared once more after the API server was restored from a backup: nothing
// else would write it again.
func TestKind_restoredHelmObjects(t *testing.T) {
	s := newScript(t)
	s.put(s.feed, seen("10", "u", 1))
	s.baseline(name, s.holder, true)
	s.replace(s.feed, []*observed{seen("3", "u", 1)}, "4")
	assert.NotEmpty(t, s.told)
	_, condition := s.observe(name, s.holder)
	assert.Equal(t, drifted, condition)
	s.baseline(name, s.holder, true)
	told := len(s.told)
	s.put(s.feed, seen("5", "u", 2))
	assert.Len(t, s.told, told+1, "it is watched as before")
}
