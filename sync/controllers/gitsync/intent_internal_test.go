package gitsync

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/delivery"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/reconcile"
)

// C41. A job starts from what the job before it has declared, and a pass does not wait for the
// write of a declaration.
func TestIntent_isKnownOnceItIsWritten(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	writing, written := make(chan struct{}), make(chan struct{})
	slow := interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		close(writing)
		<-written
		return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
	}}
	gs := &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "apps", UID: "1"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(gs).WithStatusSubresource(gs).WithInterceptorFuncs(slow).Build()
	r := &Reconciler{Client: c, inventories: &inventory.Store{}, kernel: reconcile.NewKernel(minBackoff, maxBackoff)}
	inTeam := manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: "team", Name: "a"}
	elsewhere := manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: "shared", Name: "a"}
	before := manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: "shared", Name: "b"}
	s := &scope{gs: gs, session: &session{record: record{inventory: []manifest.ID{before}}}}
	declare := r.intend(s).declare
	everything := s.toTakeOut(&target{})
	s.namespaceGoes = true
	left := s.toTakeOut(&target{})

	declared := make(chan error)
	go func() { declared <- declare(t.Context(), []manifest.ID{inTeam, elsewhere}) }()
	<-writing
	assert.Equal(t, []manifest.ID{before}, s.session.record.known(), "nothing is created before the write")
	close(written)
	require.NoError(t, <-declared)

	assert.ElementsMatch(t, []manifest.ID{before, inTeam, elsewhere}, s.session.record.known())
	assert.ElementsMatch(t, []manifest.ID{before, inTeam, elsewhere}, everything(), "also for what was handed over before")
	assert.ElementsMatch(t, []manifest.ID{before, elsewhere}, left(), "the namespace takes its own objects with it")
}

// C41: an inventory that could not be written is written by the next pass.
func TestCollect_isRepeatedUntilItIsWritten(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	down := true
	flaky := interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		if down {
			return errors.New("the API server does not answer")
		}
		return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
	}}
	stays := manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: "team", Name: "a"}
	goes := manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: "team", Name: "b"}
	before := v1alpha1.Inventory{Count: 2, Entries: inventory.Encode([]manifest.ID{stays, goes})}
	gs := &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "apps", UID: "1"}, Status: v1alpha1.GitSyncStatus{Inventory: &before}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(gs).WithStatusSubresource(gs).WithInterceptorFuncs(flaky).Build()
	r := &Reconciler{Client: c, inventories: &inventory.Store{}, kernel: reconcile.NewKernel(minBackoff, maxBackoff)}
	delivered := &target{state: delivery.State{Phase: delivery.Delivered, Digest: "digest", Ended: true, Result: apply.Result{Inventory: []manifest.ID{stays}}}}
	kept := &session{
		desired: desired{digest: "digest"}, record: record{inventory: []manifest.ID{stays, goes}, uncollected: true},
		targets: map[string]*target{"": delivered},
	}
	pass := func() error {
		gs := &v1alpha1.GitSync{}
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "apps"}, gs))
		s := &scope{gs: gs, pass: r.kernel.Begin(c, events.NewFakeRecorder(1), gs), session: kept}
		require.NoError(t, r.collect(t.Context(), s))
		_, err := r.finish(t.Context(), s, reconcile.Outcome{Pending: true}, nil)
		return err
	}

	require.Error(t, pass())
	assert.Equal(t, []manifest.ID{stays, goes}, kept.record.inventory, "what the status names")
	down = false
	require.NoError(t, pass())
	assert.Equal(t, []manifest.ID{stays}, kept.record.inventory)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(gs), gs))
	assert.EqualValues(t, 1, gs.Status.Inventory.Count)
	assert.False(t, kept.record.uncollected)
}
