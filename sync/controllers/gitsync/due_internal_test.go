package gitsync

import (
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/source/subscription"
)

func TestRequeueAfter_countsEverythingThatIsDue(t *testing.T) {
	now := time.Now()
	soon := now.Add(time.Minute)
	for _, s := range []*scope{
		{session: &session{}, looked: subscription.State{Due: soon}},
		{session: &session{}, looked: subscription.State{Phase: subscription.Asking, Began: now}},
		{session: &session{record: record{intent: &intent{showDue: soon}}}},
		{session: &session{record: record{intent: &intent{tellDue: soon}}}},
	} {
		s.now = now
		after := s.requeueAfter()
		assert.Positive(t, after, "%+v", s)
		assert.LessOrEqual(t, after, time.Minute, "%+v", s)
	}
	assert.Zero(t, (&scope{now: now, session: &session{}}).requeueAfter())
}

// While the repository is being asked, its answer is what comes next, and no back-off.
func TestFirstError_isNotRetriedWhileTheRepositoryIsAsked(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	gs := &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "apps", UID: "1"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(gs).WithStatusSubresource(gs).Build()
	now := time.Now()
	failed := reconcile.Failed(v1alpha1.GitUnreachableReason, "git server unreachable")
	s := &scope{gs: gs, now: now, session: &session{}, looked: subscription.State{Phase: subscription.Asking, Err: failed, Began: now.Add(-time.Hour)}}
	pass := reconcile.NewKernel(minBackoff, maxBackoff).Begin(c, events.NewFakeRecorder(1), gs)
	outcome, err := s.report()
	require.ErrorIs(t, err, failed)

	result, err := pass.Finish(t.Context(), outcome, err)
	require.NoError(t, err)
	assert.Zero(t, result.RequeueAfter)
	assert.Equal(t, v1alpha1.GitUnreachableReason, conditions.GetReason(gs, v1alpha1.ReadyCondition))
}
