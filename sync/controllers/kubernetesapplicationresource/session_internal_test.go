package kubernetesapplicationresource

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/manifest"
)

// C53: who changes or deletes the object again and again is answered ever more slowly.
func TestSession_slowsDownInAFight(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	backoff := func(n int) time.Duration { return time.Second << n }
	cases := map[string]struct {
		reason string
		// corrections come one by one, this long after begin.
		corrections []time.Duration
		fighting    bool
		pause       time.Duration
	}{
		"None":       {reason: "the first is made at once"},
		"Few":        {reason: "a few may be chance", corrections: seconds(0, 1, 2)},
		"Fight":      {reason: "the fourth is followed by a pause", corrections: seconds(0, 1, 2, 3), fighting: true, pause: 2 * time.Second},
		"LongFight":  {reason: "which grows", corrections: seconds(0, 1, 2, 3, 5), fighting: true, pause: 4 * time.Second},
		"Endless":    {reason: "up to a minute", corrections: seconds(0, 1, 2, 3, 5, 9, 17, 33, 65, 125), fighting: true, pause: time.Minute},
		"NowAndThen": {reason: "what happens every few minutes is no fight", corrections: seconds(0, 121, 242, 363, 484)},
		"NewFight":   {reason: "one that is over does not count", corrections: seconds(0, 1, 2, 3, 200)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, now := &session{}, begin
			for _, after := range tc.corrections {
				now = begin.Add(after)
				s.corrected(now)
			}
			assert.Equal(t, tc.fighting, s.fighting(now), tc.reason)
			assert.Equal(t, tc.pause, s.nextCorrection(now, backoff).Sub(now), tc.reason)
			assert.False(t, s.fighting(now.Add(fightOver+time.Second)), "it is over after a while of peace")
		})
	}
}

func seconds(numbers ...int) []time.Duration {
	var all []time.Duration
	for _, n := range numbers {
		all = append(all, time.Duration(n)*time.Second)
	}
	return all
}

// What is made again because it was deleted is a correction as well as what is changed back.
func TestTake_corrections(t *testing.T) {
	cases := map[string]struct {
		change apply.Change
		want   bool
	}{
		"Created":    {apply.Change{Action: apply.Created}, false},
		"MadeAgain":  {apply.Change{Action: apply.Created, Again: true}, true},
		"Configured": {apply.Change{Action: apply.Configured}, false},
		"Corrected":  {apply.Change{Action: apply.Corrected}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := &work{scope: &scope{kar: &v1alpha1.KubernetesApplicationResource{}}}
			assert.Equal(t, tc.want, w.take(apply.Result{Changes: []apply.Change{tc.change}}).corrected)
		})
	}
}

// W53, C41: what a job declared is deleted too, also while the status that was read is older.
func TestLeaving_includesWhatJobsDeclared(t *testing.T) {
	kar := &v1alpha1.KubernetesApplicationResource{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	s := &scope{kar: kar, last: &submission{}}
	s.last.inventory = []manifest.ID{s.object(), s.copyID("one")}
	leaving, staying := s.leaving(nil)
	assert.ElementsMatch(t, s.last.inventory, leaving)
	assert.Empty(t, staying)
}
