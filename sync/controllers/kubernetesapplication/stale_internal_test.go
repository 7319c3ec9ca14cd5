package kubernetesapplication

import (
	"context"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// W40: a template whose resource was written by another process in the meantime is not reported as
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
// failed after that, no other pass does.
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

// W48, C40: the resources of an application that was recreated are not those of an earlier one,
// though the cache of applications still shows that one.
func TestReconcile_leavesTheResourcesOfItsSuccessor(t *testing.T) {
	cases := map[string]struct {
		reason string
		alter  func(*v1alpha1.KubernetesApplication)
	}{
		"Deleting": {"it deleted its own and was released", func(app *v1alpha1.KubernetesApplication) {
			app.DeletionTimestamp, app.Finalizers = new(metav1.Now()), []string{v1alpha1.Finalizer}
		}},
		"Other": {"it had other templates", func(app *v1alpha1.KubernetesApplication) { app.Spec.ResourceTemplates = nil }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var earlier *v1alpha1.KubernetesApplication
			r := newReconciler(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if app, ok := o.(*v1alpha1.KubernetesApplication); ok && earlier != nil {
					earlier.DeepCopyInto(app)
					return nil
				}
				return c.Get(ctx, key, o, opts...)
			}})
			give(t, r, before)
			app, _ := reconciled(t, r)
			made := oneResource(t, r)
			require.Equal(t, app.UID, metav1.GetControllerOf(made).UID)

			successor := &fixed{Client: r.Client, app: app.DeepCopy()}
			r.Direct = successor
			earlier = app.DeepCopy()
			earlier.UID = "0"
			tc.alter(earlier)
			_, result := reconciled(t, r)
			assert.Equal(t, retryConflict, result.RequeueAfter, tc.reason)
			assert.Equal(t, made, oneResource(t, r), tc.reason)

			successor.app.UID = "0"
			reconciled(t, r)
			assert.NotEqual(t, made, oneResource(t, r), "C40: it was restored from a backup")
		})
	}
}

// fixed reads an application as it is, past a cache that is behind.
type fixed struct {
	client.Client
	app *v1alpha1.KubernetesApplication
}

func (f *fixed) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if app, ok := o.(*v1alpha1.KubernetesApplication); ok {
		f.app.DeepCopyInto(app)
		return nil
	}
	return f.Client.Get(ctx, key, o, opts...)
}
