package gitsync

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply/inventory"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// What is remembered of a GitSync goes with it: many come and go in the life of a process.
func TestRelease_forgets(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	c := fake.NewClientBuilder().WithScheme(scheme).Build()
	r := &Reconciler{
		Client: c, inventories: &inventory.Store{},
		kernel: reconcile.NewKernel(minBackoff, maxBackoff),
		looks:  reconcile.NewJobs[reconcile.Key, loaded](t.Context(), 1, func(reconcile.Key) {}, failedToLoad),
		loads:  reconcile.NewJobs[reconcile.Key, loaded](t.Context(), 1, func(reconcile.Key) {}, failedToLoad),
	}
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
