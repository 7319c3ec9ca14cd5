package kubernetesapplication

import (
	"context"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"waybill.dev/waybill/api/v1alpha1"
)

var someResource = schema.GroupResource{Resource: "kubernetesapplicationresources"}

const (
	before = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"key":"before"}}`
	after  = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"key":"after"}}`
)

// give gives the application a template, in another generation.
func give(t *testing.T, r *Reconciler, manifest string) {
	t.Helper()
	app := &v1alpha1.KubernetesApplication{}
	require.NoError(t, r.Client.Get(t.Context(), web, app))
	app.Generation++
	app.Spec.ResourceTemplates = []v1alpha1.ResourceTemplate{templateOf(t, manifest)}
	require.NoError(t, r.Client.Update(t.Context(), app))
}

func oneResource(t *testing.T, r *Reconciler) *v1alpha1.KubernetesApplicationResource {
	t.Helper()
	kar := &v1alpha1.KubernetesApplicationResource{}
	require.NoError(t, r.Client.Get(t.Context(), types.NamespacedName{Namespace: web.Namespace, Name: "one"}, kar))
	return kar
}

// submit says of the resource what its controller would.
func submit(t *testing.T, r *Reconciler) {
	t.Helper()
	kar := oneResource(t, r)
	kar.Status.State, kar.Status.ObservedGeneration = v1alpha1.StateSubmitted, kar.Generation
	conditions.MarkTrue(kar, v1alpha1.SubmittedCondition, v1alpha1.SucceededReason, "submitted")
	conditions.MarkTrue(kar, v1alpha1.ReadyCondition, v1alpha1.SucceededReason, "submitted")
	require.NoError(t, r.Client.Update(t.Context(), kar))
}

// W40: a template whose resource was written by somebody else in the meantime is not taken for
// submitted: the write is made again soon, and nothing is said until then.
func TestUpdate_thatLosesARaceIsMadeAgain(t *testing.T) {
	for name, refusal := range map[string]error{
		"written": apierrors.NewConflict(someResource, "one", nil),
		"gone":    apierrors.NewNotFound(someResource, "one"),
	} {
		t.Run(name, func(t *testing.T) {
			var refused error
			r := newReconciler(t, interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				if _, ok := o.(*v1alpha1.KubernetesApplicationResource); ok && refused != nil {
					return refused
				}
				return c.Update(ctx, o, opts...)
			}})
			give(t, r, before)
			reconciled(t, r)
			submit(t, r)
			app, _ := reconciled(t, r)
			require.True(t, conditions.IsReady(app))
			observed := app.Status.ObservedGeneration

			give(t, r, after)
			refused = refusal
			app, result := reconciled(t, r)
			assert.Equal(t, retryConflict, result.RequeueAfter)
			assert.Equal(t, observed, app.Status.ObservedGeneration, "the edit is not done")

			refused = nil
			app, _ = reconciled(t, r)
			assert.Equal(t, app.Generation, app.Status.ObservedGeneration)
			assert.JSONEq(t, after, string(oneResource(t, r).Spec.Template.Raw))
		})
	}
}

// W46, W49: a resource of ours that a cache shows between two looks at it is no stranger.
func TestCreate_knowsItsOwn(t *testing.T) {
	behind := false
	r := newReconciler(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*v1alpha1.KubernetesApplicationResourceList); ok && behind {
			return nil // as before it was made
		}
		return c.List(ctx, list, opts...)
	}})
	give(t, r, before)
	reconciled(t, r)
	behind = true
	app, result := reconciled(t, r)
	assert.NotEqual(t, v1alpha1.ResourceConflictReason, conditions.GetReason(app, v1alpha1.ReadyCondition))
	assert.Equal(t, retryConflict, result.RequeueAfter)
}

// W36: a pass that finds the cache behind a decision comes back: where the pass that made it
// failed after that, nobody else does.
func TestSchedule_comesBackUntilACacheShowsIt(t *testing.T) {
	r := newReconciler(t, interceptor.Funcs{})
	app := &v1alpha1.KubernetesApplication{}
	require.NoError(t, r.Client.Get(t.Context(), web, app))
	r.placements.assume(web, app, func(func(string) int) string { return "oslo" })
	app, result := reconciled(t, r)
	assert.Empty(t, app.Status.Conditions)
	assert.Equal(t, retryConflict, result.RequeueAfter)
}

// W38: a reconciliation that was asked for while the hub refused a write of a resource is passed on
// by the next try: until then it is not said to be handled.
func TestUpdate_thatIsRefusedPassesTheRequestOn(t *testing.T) {
	refusing := false
	r := newReconciler(t, interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
		if _, ok := o.(*v1alpha1.KubernetesApplicationResource); ok && refusing {
			return apierrors.NewForbidden(someResource, "one", nil)
		}
		return c.Update(ctx, o, opts...)
	}})
	give(t, r, before)
	reconciled(t, r)
	submit(t, r)
	app, _ := reconciled(t, r)
	app.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: "noon"}
	require.NoError(t, r.Client.Update(t.Context(), app))

	refusing = true
	app, _ = reconciled(t, r)
	require.Equal(t, v1alpha1.ResourcesFailedReason, conditions.GetReason(app, v1alpha1.ReadyCondition))
	assert.Empty(t, app.Status.LastHandledReconcileAt)
	refusing = false
	app, _ = reconciled(t, r)
	assert.Equal(t, "noon", oneResource(t, r).Annotations[v1alpha1.ReconcileAtAnnotation])
	assert.Equal(t, "noon", app.Status.LastHandledReconcileAt)
}
