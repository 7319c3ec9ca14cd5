package kubernetesapplication

import (
	"context"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/controllers/kubernetesapplication/placement"
	"waybill.dev/waybill/test/env"
)

var widget = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// A question that takes too long is none that was answered with no.
func TestUnanswered_saysWhy(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errTooSlow)
	err := unanswered(ctx, context.Canceled)
	require.ErrorIs(t, err, placement.ErrUnanswered)
	assert.EqualError(t, err, "no answer: it does not answer in time")
}

// W36: what an event will announce is not asked for meanwhile; what none will, is.
func TestMisfit_looksAgainWhereNothingIsAnnounced(t *testing.T) {
	for reason, after := range map[placement.Reason]time.Duration{
		placement.NotSelected:   0,
		placement.Paused:        0,
		placement.Unreachable:   0,
		placement.KindNotServed: 0,
		placement.Unanswered:    retryUnanswered,
	} {
		r := newReconciler(t, interceptor.Funcs{})
		r.filters = placement.Filters{func(placement.Workload, placement.Candidate) (placement.Reason, string) { return reason, "said" }}
		app, result := reconciled(t, r)
		assert.Equal(t, v1alpha1.NoClusterFitsReason, conditions.GetReason(app, v1alpha1.ReadyCondition))
		assert.Equal(t, after, result.RequeueAfter, reason)
	}
}

// newPolled returns a cluster, and pollers there that look all the time.
func newPolled(t *testing.T) (*cluster.Cluster, *discoveryPollers, <-chan types.NamespacedName) {
	t.Helper()
	server := env.Shared(t, env.Options{Name: "user", NoControllers: true})
	c, err := cluster.NewLocal(t.Context(), server.RESTConfig(), nil, nil)
	require.NoError(t, err)
	told := make(chan types.NamespacedName, 8)
	l := newDiscoveryPollers(func(app types.NamespacedName) { told <- app })
	l.every = 10 * time.Millisecond
	return c, l, told
}

func (d *discoveryPollers) count() int { return len(d.at.Keys()) }

// C57: an application that waits for a kind is enqueued when it is served, whatever serves it; one question
// does for all.
func TestPollers_wakeWhoWaits(t *testing.T) {
	c, l, told := newPolled(t)
	blog := types.NamespacedName{Namespace: web.Namespace, Name: "blog"}
	deployment := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	unheardOf := deployment.GroupVersion().WithKind("Widget")
	l.add(c, blog, unheardOf)
	l.add(c, blog, widget)
	assert.Equal(t, 2, l.count())
	l.add(c, web, unheardOf)
	l.add(c, web, deployment)
	assert.Equal(t, web, <-told)
	assert.Equal(t, 2, l.count(), "one for each version")
	l.leave(blog)
	assert.Zero(t, l.count(), "no application waits any more")
	assert.Empty(t, told)
}

// What waits for a cluster ends with it.
func TestPollers_endWithTheCluster(t *testing.T) {
	server := env.Shared(t, env.Options{Name: "user", NoControllers: true})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, err := cluster.NewLocal(ctx, server.RESTConfig(), nil, nil)
	require.NoError(t, err)
	l := newDiscoveryPollers(func(types.NamespacedName) {})
	l.add(c, web, widget)
	cancel()
	require.Eventually(t, func() bool { return l.count() == 0 }, time.Minute, time.Millisecond)
}

// An application that has a cluster waits for none.
func TestPollers_areLeftWithTheKinds(t *testing.T) {
	c, l, _ := newPolled(t)
	k := newKinds(func(types.NamespacedName) {})
	k.pollers = l
	require.ErrorContains(t, k.survey(c, web).serves(t.Context(), widget), "install what defines it")
	assert.Equal(t, 1, l.count())
	k.leave(web)
	assert.Zero(t, l.count())
}
