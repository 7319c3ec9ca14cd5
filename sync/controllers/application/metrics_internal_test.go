package application

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/reconcile"
)

// A pass that ends after its Application was seen to be gone sets the series again, and the rest after
// its write. The pass that finds the Application gone removes them.
func TestReconcile_forgetsWhatALatePassSet(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).Build(), index: newIndex()}
	r.throttle = newThrottle(nil)
	gone := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gone"}}
	observeMetrics(gone)
	r.throttle.wrote(client.ObjectKeyFromObject(gone), 0)
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(gone)})
	require.NoError(t, err)
	assert.False(t, readyGauge.DeleteLabelValues("team", "gone"), "the series is still there")
	assert.Empty(t, r.throttle.byKey.All())
}

// What was written of an Application is not remembered when it went, or was recreated, during the
// pass.
func TestReconcile_forgetsWhatIsGone(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	app := func(uid types.UID) *v1alpha1.Application {
		return &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop", UID: uid}}
	}
	key := client.ObjectKeyFromObject(app(""))
	for name, tc := range map[string]struct {
		now        *v1alpha1.Application
		remembered bool
	}{
		"still there": {app("uid"), true},
		"gone":        {nil, false},
		"made anew":   {app("another"), false},
	} {
		t.Run(name, func(t *testing.T) {
			written := app("uid")
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(written).WithStatusSubresource(written).Build()
			require.NoError(t, c.Get(t.Context(), key, written))
			r := &Reconciler{index: newIndex(), kernel: reconcile.NewKernel(minBackoff, maxBackoff), pods: newPods(t.Context(), nil, nil, nil)}
			cached := written.DeepCopy()
			written.Status.ComponentsReady = "1/1"
			require.NoError(t, r.kernel.Record(t.Context(), c, written))
			_, _ = r.pods.try("uid", "pod", r.kernel.Backoff)
			if tc.now != nil {
				r.index.put(key, tc.now)
			}
			r.forgetFormer(key, "uid")
			r.kernel.Begin(c, nil, cached)
			assert.Equal(t, tc.remembered, cached.Status.ComponentsReady == "1/1")
			assert.Equal(t, tc.remembered, len(r.pods.tries) == 1)
		})
	}
}
