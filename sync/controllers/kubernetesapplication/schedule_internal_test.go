package kubernetesapplication

import (
	"context"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster"
	"waybill.dev/waybill/sync/controllers/kubernetesapplication/placement"
	"waybill.dev/waybill/sync/reconcile"
)

var web = types.NamespacedName{Namespace: "team", Name: "web"}

// newReconciler returns one that takes any cluster for fitting, and a hub with an application
// that has none yet and one KubernetesCluster. The hub answers as funcs say.
func newReconciler(t *testing.T, funcs interceptor.Funcs) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	app := &v1alpha1.KubernetesApplication{
		ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name, UID: "1", CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour))},
		Spec:       v1alpha1.KubernetesApplicationSpec{ClusterSelector: &metav1.LabelSelector{}},
	}
	oslo := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: "oslo"}}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(app, oslo).WithStatusSubresource(app).
		WithIndex(&v1alpha1.KubernetesApplicationResource{}, applicationIndex, applicationOf).
		WithInterceptorFuncs(funcs).Build()
	clusters := cluster.NewRegistry(nil, cluster.Options{})
	t.Cleanup(clusters.Close)
	r := &Reconciler{
		Client: hub, Direct: hub, Recorder: events.NewFakeRecorder(16), Clusters: clusters,
		kernel: reconcile.NewKernel(minBackoff, maxBackoff), waker: &reconcile.Waker[ctrl.Request]{},
		filters: placement.Filters{}, scores: placement.DefaultScores(), placements: newPlacements(), reports: &reports{},
		started: func() time.Time { return time.Time{} }, fill: func() error { return nil },
	}
	r.kinds = newKinds(r.wake)
	return r
}

func reconciled(t *testing.T, r *Reconciler) (*v1alpha1.KubernetesApplication, ctrl.Result) {
	t.Helper()
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: web})
	require.NoError(t, err)
	app := &v1alpha1.KubernetesApplication{}
	require.NoError(t, r.Client.Get(t.Context(), web, app))
	return app, result
}

// W36: an application that waits for a cluster says that the hub refuses to record it.
func TestSchedule_saysThatTheHubRefuses(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "kubernetesapplications"}, web.Name, nil)
	r := newReconciler(t, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return refused
	}})
	app, result := reconciled(t, r)
	assert.True(t, conditions.IsFalse(app, v1alpha1.ReadyCondition))
	assert.Contains(t, conditions.GetMessage(app, v1alpha1.ReadyCondition), refused.Error())
	assert.Empty(t, app.Status.Cluster)
	assert.Equal(t, minBackoff, result.RequeueAfter)
	assert.False(t, r.placements.assumed(web, "1"), "nothing was placed")
}

// A write that conflicts with another one is nothing to report.
func TestSchedule_saysNothingOfAConflict(t *testing.T) {
	r := newReconciler(t, interceptor.Funcs{Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "kubernetesapplications"}, web.Name, nil)
	}})
	app, result := reconciled(t, r)
	assert.Empty(t, app.Status.Conditions)
	assert.Equal(t, retryConflict, result.RequeueAfter)
}

// W36, W60: what was decided is remembered until a cache shows it.
func TestSchedule_remembersUntilACacheShowsIt(t *testing.T) {
	r := newReconciler(t, interceptor.Funcs{})
	app, _ := reconciled(t, r)
	require.Equal(t, "oslo", app.Spec.ClusterName)
	assert.True(t, r.placements.assumed(web, "1"))
	reconciled(t, r)
	assert.False(t, r.placements.assumed(web, "1"), "shown")
}

// W36: that a user chose a cluster while ours was being confirmed passes for our own write. If ours
// is taken back, the application is looked at again.
func TestSchedule_seesAChoiceOfSomebodyElse(t *testing.T) {
	r := newReconciler(t, interceptor.Funcs{})
	woken := newQueue(t, r)
	app := &v1alpha1.KubernetesApplication{}
	require.NoError(t, r.Client.Get(t.Context(), web, app))
	assume := func() {
		r.placements.assume(web, app, func(func(string) int) string { return "oslo" })
	}
	assume()
	r.takeBack(t.Context(), r.newScope(app))
	assert.Zero(t, woken.Len(), "no other was chosen")

	assume()
	chosen := app.DeepCopy()
	chosen.Generation, chosen.Spec.ClusterName = app.Generation+1, "rome"
	require.NoError(t, r.Client.Update(t.Context(), chosen))
	require.False(t, r.changed().Update(event.UpdateEvent{ObjectOld: app, ObjectNew: chosen}), "it passes for our own write")
	r.takeBack(t.Context(), r.newScope(app))
	assert.Equal(t, 1, woken.Len())
}

// newQueue returns a queue that applications are enqueued into.
func newQueue(t *testing.T, r *Reconciler) queue {
	t.Helper()
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	t.Cleanup(q.ShutDown)
	require.NoError(t, r.waker.Source().Start(t.Context(), q))
	return q
}

// Of an application that is gone nothing is kept, also where it never had a cluster.
func TestReconcile_forgetsWhatIsGone(t *testing.T) {
	r := newReconciler(t, interceptor.Funcs{})
	r.filters = placement.DefaultFilters()
	app, _ := reconciled(t, r)
	require.Equal(t, v1alpha1.NoClusterFitsReason, conditions.GetReason(app, v1alpha1.ReadyCondition))
	require.NoError(t, r.Client.Delete(t.Context(), app))
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: web})
	require.NoError(t, err)
	assert.Empty(t, r.placements.uids)

	r.placements.met(web, "1")
	assert.Equal(t, types.UID("1"), r.placements.met(web, "2"), "another of that name")
	assert.Empty(t, r.placements.met(web, "2"))
	assert.Equal(t, types.UID("2"), r.placements.leave(web))
}
