package kubernetesapplication

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"waybill.dev/waybill/api/v1alpha1"
)

// A cluster that answers and cannot be used, which only those know who tried, is said of the
// application too, also of one that was submitted before.
func TestUnusable_isSaidOnce(t *testing.T) {
	const refusal = "cluster team/oslo: the API server refuses the credentials of the kubeconfig (401): renew them"
	r := newReconciler(t, interceptor.Funcs{})
	give(t, r, before)
	reconciled(t, r)
	submit(t, r)
	app, _ := reconciled(t, r)
	require.True(t, conditions.IsReady(app), "%+v", app.Status)

	kar := oneResource(t, r)
	conditions.MarkFalse(kar, v1alpha1.ReadyCondition, v1alpha1.ClusterUnreachableReason, refusal)
	require.NoError(t, r.Client.Update(t.Context(), kar))
	app, _ = reconciled(t, r)
	assert.True(t, conditions.IsFalse(app, v1alpha1.ReadyCondition))
	assert.Equal(t, v1alpha1.ClusterUnreachableReason, conditions.GetReason(app, v1alpha1.ReadyCondition))
	assert.Equal(t, refusal, conditions.GetMessage(app, v1alpha1.ReadyCondition))
	assert.Equal(t, v1alpha1.StateSubmitted, app.Status.State, "as far as was seen last")

	submit(t, r)
	app, _ = reconciled(t, r)
	assert.True(t, conditions.IsReady(app))
}

// What is known of the cluster itself is not repeated for what resources say of it.
func TestUnusable_oneResourceIsEnough(t *testing.T) {
	lost := func() resource {
		kar := &v1alpha1.KubernetesApplicationResource{}
		conditions.MarkFalse(kar, v1alpha1.ReadyCondition, v1alpha1.ClusterUnreachableReason, "cluster team/oslo: it does not answer in time")
		return resource{live: kar}
	}
	app := &v1alpha1.KubernetesApplication{}
	app.Spec.ResourceTemplates = make([]v1alpha1.ResourceTemplate, 3)
	s := &scope{app: app, resources: []resource{{}, lost(), lost()}}
	assert.EqualError(t, s.unusable(), "cluster team/oslo: it does not answer in time")
	assert.NoError(t, s.trouble(), "which names none of them")
}
