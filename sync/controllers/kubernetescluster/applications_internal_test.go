package kubernetescluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"waybill.dev/waybill/api/v1alpha1"
)

// C38, C40: what holds up the deletion of a cluster is named by what can be found: a resource
// stands for itself where the application that controlled it is gone.
func TestScheduled_namesWhatExists(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	meta := func(name string, uid types.UID) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "team", Name: name, UID: uid}
	}
	app := func(name string, uid types.UID) *v1alpha1.KubernetesApplication {
		return &v1alpha1.KubernetesApplication{ObjectMeta: meta(name, uid)}
	}
	of := func(name string, app *v1alpha1.KubernetesApplication) *v1alpha1.KubernetesApplicationResource {
		kar := &v1alpha1.KubernetesApplicationResource{ObjectMeta: meta(name, "")}
		kar.Spec.ClusterName = "berlin"
		kar.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(app, v1alpha1.GroupVersion.WithKind(v1alpha1.KubernetesApplicationKind))}
		return kar
	}
	there := app("there", "1")
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(there, of("one", there), of("two", there), of("orphan", app("gone", "2"))).Build()
	r := &Reconciler{Client: hub}
	found := &leftovers{}
	require.NoError(t, r.addScheduled(t.Context(), &scope{kc: &v1alpha1.KubernetesCluster{ObjectMeta: meta("berlin", "3")}}, found))
	assert.Equal(t, []string{"KubernetesApplication team/there (of the hub)", "KubernetesApplicationResource team/orphan (of the hub)"}, found.toDelete)
}
