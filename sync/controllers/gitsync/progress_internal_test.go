package gitsync

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/delivery"
	"waybill.dev/waybill/sync/source/subscription"
)

// withReady returns a GitSync with a condition Ready; empty for none.
func withReady(status metav1.ConditionStatus, revision string) *v1alpha1.GitSync {
	gs := &v1alpha1.GitSync{Status: v1alpha1.GitSyncStatus{Revision: revision}}
	if status != "" {
		gs.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ReadyCondition, Status: status, Reason: "Test"}}
	}
	return gs
}

// P6: what takes long is reported, and no more: neither a quick delivery, nor another try of what has failed.
func TestProgress(t *testing.T) {
	quick, slow := delivery.State{Phase: delivery.Working}, delivery.State{Phase: delivery.Working, Slow: true}
	turn, overdue := delivery.State{Phase: delivery.Queued}, delivery.State{Phase: delivery.Queued, Overdue: true}
	cases := map[string]struct {
		reason   string
		gs       *v1alpha1.GitSync
		reported string
		state    delivery.State
		want     string
	}{
		"quick":    {"it ends soon", withReady("", ""), "", quick, ""},
		"first":    {"there is no Ready yet", withReady("", ""), "", slow, "applying main@sha1:new: 1,200 of 20,000 objects in 1 cluster"},
		"update":   {"Ready is about another revision", withReady("True", "main@sha1:old"), "digest-old", slow, "applying main@sha1:new: 1,200 of 20,000 objects in 1 cluster"},
		"again":    {"Ready is about what is applied", withReady("True", "main@sha1:new"), "digest", slow, ""},
		"next":     {"another revision may be better", withReady("False", "main@sha1:old"), "digest-old", slow, "applying main@sha1:new: 1,200 of 20,000 objects in 1 cluster"},
		"retry":    {"what has failed is of more interest", withReady("False", "main@sha1:old"), "digest", slow, ""},
		"restart":  {"it may be what has failed", withReady("False", "main@sha1:old"), "", slow, ""},
		"resumed":  {"Ready is about nothing", withReady("Unknown", "main@sha1:old"), "", slow, "applying main@sha1:new: 1,200 of 20,000 objects in 1 cluster"},
		"in turn":  {"others are first", withReady("", ""), "", turn, ""},
		"waiting":  {"others are first, for long", withReady("", ""), "", overdue, "cluster berlin: waiting until deliveries of other GitSyncs have ended"},
		"not news": {"Ready says what was before", withReady("True", "main@sha1:old"), "", overdue, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.gs.Spec.ClusterSelector = &metav1.LabelSelector{}
			tc.state.Applied = 1200
			s := &scope{gs: tc.gs, pending: true, session: newest("new", "digest", &target{name: "berlin", state: tc.state})}
			s.session.desired.count, s.session.reported = 20000, tc.reported
			assert.Equal(t, tc.want, s.progress(), tc.reason)
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
		s := &scope{gs: tc.gs, now: now, session: &session{}}
		if !tc.till.IsZero() {
			s.looked = subscription.State{Phase: subscription.Asking, Began: tc.till.Add(-patience)}
		}
		s.tellFetching()
		assert.Equal(t, tc.want, conditions.GetMessage(tc.gs, v1alpha1.ReadyCondition), reason)
	}
}

// A GitSync's own timeout is called that, and what ended otherwise is not.
func TestWithinTimeout(t *testing.T) {
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	refused := errors.New("the API server refuses the credentials")
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
		assert.EqualError(t, withinTimeout(tc.ctx, apply.Result{Err: tc.err}, &apply.Progress{}, time.Minute).Err, tc.want, reason)
	}
	assert.NoError(t, withinTimeout(over, apply.Result{}, &apply.Progress{}, time.Minute).Err)
}
