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
)

func TestRequeueAfter_countsEverythingThatIsDue(t *testing.T) {
	now := time.Now()
	soon := now.Add(time.Minute)
	for _, session := range []*session{
		{look: reconcile.Retry{At: soon}},
		{intent: &intent{showDue: soon}},
		{intent: &intent{tellDue: soon}},
	} {
		after := (&scope{now: now, session: session}).requeueAfter()
		assert.Positive(t, after, "%+v", session)
		assert.LessOrEqual(t, after, time.Minute, "%+v", session)
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
	s := &scope{gs: gs, now: now, looking: true, session: &session{lookErr: failed, look: reconcile.Retry{At: now, Failures: 3}}}
	pass := reconcile.NewKernel(minBackoff, maxBackoff).Begin(c, events.NewFakeRecorder(1), gs)
	outcome, err := s.report()
	require.ErrorIs(t, err, failed)

	result, err := pass.Finish(t.Context(), outcome, err)
	require.NoError(t, err)
	assert.Zero(t, result.RequeueAfter)
	assert.Equal(t, v1alpha1.GitUnreachableReason, conditions.GetReason(gs, v1alpha1.ReadyCondition))
}
