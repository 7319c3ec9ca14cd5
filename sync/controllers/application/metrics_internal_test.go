package application

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"waybill.dev/waybill/api/v1alpha1"
)

// A pass that ends after its Application was seen to be gone sets the series again. The pass that
// finds the Application gone removes them.
func TestReconcile_forgetsSeriesThatALatePassSet(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	r := &Reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).Build(), index: newIndex()}
	gone := &v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gone"}}
	observeMetrics(gone)
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(gone)})
	require.NoError(t, err)
	assert.False(t, readyGauge.DeleteLabelValues("team", "gone"), "the series is still there")
}
