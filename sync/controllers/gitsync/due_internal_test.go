package gitsync

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

func TestRequeueAfter_countsEverythingThatIsDue(t *testing.T) {
	now := time.Now()
	soon := now.Add(time.Minute)
	for _, session := range []*session{
		{look: reconcile.Retry{At: soon}},
		{retry: reconcile.Retry{At: soon}},
		{showDue: soon},
	} {
		after := (&scope{now: now, session: session}).requeueAfter()
		assert.Positive(t, after, "%+v", session)
		assert.LessOrEqual(t, after, time.Minute, "%+v", session)
	}
	assert.Zero(t, (&scope{now: now, session: &session{}}).requeueAfter())
}

// A cluster that failed is tried again once each time that is due, and not until the last of the
// others is done.
func TestRetryDue(t *testing.T) {
	now := time.Now()
	failed := apply.Result{Problems: []manifest.Problem{{Reason: apply.ReasonRefused}}}
	cases := map[string]struct {
		reason         string
		result         apply.Result
		retryAt, tried time.Time
		due            bool
	}{
		"refused":       {"what was refused may be let through by now", failed, now, now.Add(-time.Minute), true},
		"not answered":  {"the cluster may answer by now", apply.Result{Err: errors.New("lost")}, now, now.Add(-time.Minute), true},
		"too early":     {"of the back-off", failed, now.Add(time.Second), now.Add(-time.Minute), false},
		"tried already": {"another cluster is still at work", failed, now.Add(-time.Second), now.Add(-time.Millisecond), false},
		"all well":      {"nothing failed", apply.Result{}, now, now.Add(-time.Minute), false},
		"no back-off":   {"nothing is to be tried again", failed, time.Time{}, now, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := &scope{now: now, session: &session{retry: reconcile.Retry{At: c.retryAt}}}
			assert.Equal(t, c.due, s.retryDue(&target{result: c.result, tried: c.tried}), c.reason)
		})
	}
}

// C46: what admission refuses until a definition is there is not waited for longer than that takes.
func TestBackoff_isShortWhileAnInstallationIsRefused(t *testing.T) {
	installation := manifest.ID{Group: v1alpha1.Group, Version: v1alpha1.GroupVersion.Version, Kind: v1alpha1.ApplicationInstallationKind, Namespace: "team-a", Name: "web"}
	cases := map[string]struct {
		reason  string
		problem manifest.Problem
		want    time.Duration
	}{
		"refused installation":  {"its definition may be there by now", manifest.Problem{ID: installation, Reason: apply.ReasonRefused}, refusedBackoff},
		"invalid installation":  {"only a commit ends it", manifest.Problem{ID: installation, Reason: apply.ReasonInvalid}, maxBackoff},
		"refused other objects": {"a quota or policy changes seldom", manifest.Problem{ID: manifest.ID{Kind: "Pod"}, Reason: apply.ReasonRefused}, maxBackoff},
	}
	kernel := reconcile.NewKernel(minBackoff, maxBackoff)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			failing := &target{result: apply.Result{Problems: []manifest.Problem{c.problem}}}
			s := &scope{session: &session{targets: map[string]*target{"": failing}}}
			assert.Equal(t, c.want, s.backoff(kernel)(100), c.reason)
			assert.Equal(t, minBackoff, s.backoff(kernel)(1))
		})
	}
}
