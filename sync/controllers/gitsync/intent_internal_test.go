package gitsync

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/apply/inventory"
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
	s := &scope{gs: gs, session: &session{inventory: []manifest.ID{before}}}
	declare := r.intend(s).declare
	everything := s.toTakeOut(&target{})
	s.namespaceGoes = true
	left := s.toTakeOut(&target{})

	declared := make(chan error)
	go func() { declared <- declare(t.Context(), []manifest.ID{inTeam, elsewhere}) }()
	<-writing
	assert.Equal(t, []manifest.ID{before}, s.known(), "nothing is created before the write")
	close(written)
	require.NoError(t, <-declared)

	assert.ElementsMatch(t, []manifest.ID{before, inTeam, elsewhere}, s.known())
	assert.ElementsMatch(t, []manifest.ID{before, inTeam, elsewhere}, everything(), "also for what was handed over before")
	assert.ElementsMatch(t, []manifest.ID{before, elsewhere}, left(), "the namespace takes its own objects with it")
}
