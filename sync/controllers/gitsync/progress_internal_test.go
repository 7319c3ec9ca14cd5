package gitsync

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply"
	"waybill.dev/waybill/sync/reconcile"
)

// withReady returns a GitSync with a condition Ready; empty for none.
func withReady(status metav1.ConditionStatus, revision string) *v1alpha1.GitSync {
	gs := &v1alpha1.GitSync{Status: v1alpha1.GitSyncStatus{Revision: revision}}
	if status != "" {
		gs.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: status, Reason: "Test"}}
	}
	return gs
}

// working is a target whose delivery is under way.
func working(name string, begun bool) *target {
	p := &progress{}
	p.shown = reconcile.NewProgress(func() int { return 1200 }, func() {})
	if begun {
		p.shown.Begin()
	}
	return &target{name: name, applier: &apply.Applier{}, delivering: true, tried: time.Now(), progress: p}
}

// P6: what takes long is told, and no more: neither a quick delivery, nor another try of what has failed.
func TestProgress(t *testing.T) {
	cases := map[string]struct {
		reason   string
		gs       *v1alpha1.GitSync
		reported string
		begun    bool
		after    time.Duration
		want     string
	}{
		"quick":    {"it ends soon", withReady("", ""), "", true, 4 * time.Second, ""},
		"first":    {"there is no Ready yet", withReady("", ""), "", true, 6 * time.Second, "applying main@sha1:new: 1,200 of 20,000 objects in 1 cluster"},
		"update":   {"Ready is about another revision", withReady("True", "main@sha1:old"), "digest-old", true, 6 * time.Second, "applying main@sha1:new: 1,200 of 20,000 objects in 1 cluster"},
		"again":    {"Ready is about what is applied", withReady("True", "main@sha1:new"), "digest", true, 6 * time.Second, ""},
		"next":     {"another revision may be better", withReady("False", "main@sha1:old"), "digest-old", true, 6 * time.Second, "applying main@sha1:new: 1,200 of 20,000 objects in 1 cluster"},
		"retry":    {"what has failed is of more interest", withReady("False", "main@sha1:old"), "digest", true, 6 * time.Second, ""},
		"restart":  {"it may be what has failed", withReady("False", "main@sha1:old"), "", true, 6 * time.Second, ""},
		"resumed":  {"Ready is about nothing", withReady("Unknown", "main@sha1:old"), "", true, 6 * time.Second, "applying main@sha1:new: 1,200 of 20,000 objects in 1 cluster"},
		"in turn":  {"others are first", withReady("", ""), "", false, 20 * time.Second, ""},
		"waiting":  {"others are first, for long", withReady("", ""), "", false, 31 * time.Second, "cluster berlin: waiting until deliveries of other GitSyncs have ended"},
		"not news": {"Ready says what was before", withReady("True", "main@sha1:old"), "", false, 31 * time.Second, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.gs.Spec.ClusterSelector = &metav1.LabelSelector{}
				s := &scope{gs: tc.gs, pending: true, session: newest("new", "digest", working("berlin", tc.begun))}
				s.session.count, s.session.reported = 20000, tc.reported
				time.Sleep(tc.after)
				s.now = time.Now()
				assert.Equal(t, tc.want, s.progress(), tc.reason)
				if !tc.begun && tc.after < turnPatience {
					assert.Equal(t, turnPatience-tc.after, s.requeueAfter())
				}
			})
		})
	}
}

// A new GitSync says that its repository takes long; one that says something already goes on saying it.
func TestTellFetching(t *testing.T) {
	now := time.Now()
	for reason, tc := range map[string]struct {
		gs   *v1alpha1.GitSync
		till time.Time
		want string
	}{
		"most servers answer soon":    {withReady("", ""), now, ""},
		"nothing else is known":       {withReady("", ""), now.Add(-patience), "fetching the repository, and rendering spec.path"},
		"what was delivered is":       {withReady("True", ""), now.Add(-patience), ""},
		"the repository has answered": {withReady("", ""), time.Time{}, ""},
	} {
		s := &scope{gs: tc.gs, now: now, session: &session{waitsUntil: tc.till}}
		s.tellFetching()
		assert.Equal(t, tc.want, conditions.GetMessage(tc.gs, v1alpha1.ReadyCondition), reason)
	}
}

// A GitSync's own timeout is called that, and what ended otherwise is not.
func TestWithinTimeout(t *testing.T) {
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	refused := errors.New("the API server refuses the credentials")
	p := working("", true).progress
	for reason, tc := range map[string]struct {
		ctx  context.Context
		err  error
		want string
	}{
		"it is over": {over, context.DeadlineExceeded,
			"applying took longer than spec.timeout (1m0s): nothing is applied yet, and the next attempt continues from there; increase spec.timeout to give it more time"},
		"something else came first":    {over, refused, refused.Error()},
		"somebody else's time is over": {t.Context(), context.DeadlineExceeded, context.DeadlineExceeded.Error()},
	} {
		assert.EqualError(t, p.withinTimeout(tc.ctx, apply.Result{Err: tc.err}, time.Minute).Err, tc.want, reason)
	}
	assert.NoError(t, p.withinTimeout(over, apply.Result{}, time.Minute).Err)
}
