package reconcile_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

// world is a kernel with one GitSync, and what it writes and says.
type world struct {
	client client.Client
	kernel *reconcile.Kernel
	events *events.FakeRecorder
	writes int
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	w := &world{kernel: reconcile.NewKernel(time.Second, 8*time.Second), events: events.NewFakeRecorder(16)}
	count := interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
		w.writes++
		return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
	}}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.GitSync{}).WithInterceptorFuncs(count).Build()
	return w
}

func newGitSync() *v1alpha1.GitSync {
	return &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{
		Name: "web", Namespace: "team", UID: "1", Generation: 3,
		Annotations: map[string]string{v1alpha1.ReconcileAtAnnotation: "noon"},
	}}
}

func (w *world) get(t *testing.T) *v1alpha1.GitSync {
	t.Helper()
	gs := &v1alpha1.GitSync{}
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "web"}, gs))
	return gs
}

func (w *world) begin(gs *v1alpha1.GitSync) *reconcile.Pass {
	return w.kernel.Begin(w.client, w.events, gs)
}
