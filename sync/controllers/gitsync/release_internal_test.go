package gitsync

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
	"waybill.dev/waybill/sync/source/subscription"
)

// What is remembered of a GitSync goes with it: many come and go in the life of a process.
func TestRelease_forgets(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	r := releasing(t, c)
	gs := &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "apps", UID: "1"}}
	s := &scope{gs: gs, session: r.session(gs)}
	var ids []manifest.ID
	for i := range 5000 {
		ids = append(ids, manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: "team", Name: fmt.Sprintf("settings-of-part-%05d", i)})
	}
	saved, err := r.inventories.Save(t.Context(), c, gs, v1alpha1.Inventory{}, ids)
	require.NoError(t, err)
	require.NoError(t, c.DeleteAllOf(t.Context(), &corev1.Secret{}))
	_, err = r.inventories.Load(t.Context(), c, gs, saved)
	require.NoError(t, err, "it is remembered")

	require.NoError(t, r.release(t.Context(), s))
	_, err = r.inventories.Load(t.Context(), c, gs, saved)
	require.Error(t, err, "the inventory")
	assert.Nil(t, r.sessions.Get(s.session.key))
}

// releasing returns what release needs.
func releasing(t *testing.T, c client.Client) *Reconciler {
	return &Reconciler{
		Client: c, inventories: &inventory.Store{},
		kernel: reconcile.NewKernel(minBackoff, maxBackoff),
		looks:  subscription.NewPool[reconcile.Key, loaded](t.Context(), subscription.Options[reconcile.Key]{Width: 1}),
		loads:  reconcile.NewJobs[reconcile.Key, loaded](t.Context(), 1, func(reconcile.Key) {}, failedToLoad),
	}
}

// C41: a GitSync that is gone is not tracked again while the cache still shows it, and one that is
// created in its place is.
func TestReconcile_leavesAReleasedGitSyncAlone(t *testing.T) {
	shown := &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: "apps", UID: "1", ResourceVersion: "1", DeletionTimestamp: ptr.To(metav1.Now()), Finalizers: []string{v1alpha1.Finalizer},
	}}
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	behind := interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
		if shown == nil {
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		}
		shown.DeepCopyInto(obj.(*v1alpha1.GitSync))
		return nil
	}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(shown.DeepCopy()).WithInterceptorFuncs(behind).Build()
	r := releasing(t, c)
	key := reconcile.KeyOf(shown)
	request := ctrl.Request{NamespacedName: key.NamespacedName}
	require.NoError(t, r.release(t.Context(), &scope{gs: shown.DeepCopy(), session: &session{key: key}}))

	result, err := r.Reconcile(t.Context(), request)
	require.NoError(t, err)
	assert.Zero(t, result)
	assert.Nil(t, r.sessions.Get(key), "it is not begun anew")

	shown = &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "apps", UID: "2", Finalizers: []string{v1alpha1.Finalizer}}}
	shown.Spec.Suspend = true
	_, err = r.Reconcile(t.Context(), request)
	require.NoError(t, err)
	assert.NotNil(t, r.sessions.Get(reconcile.KeyOf(shown)), "another of the name is")

	shown = nil
	_, err = r.Reconcile(t.Context(), request)
	require.NoError(t, err)
	assert.Nil(t, r.released.Get(key.NamespacedName), "nothing is remembered when the cache has caught up")
}
