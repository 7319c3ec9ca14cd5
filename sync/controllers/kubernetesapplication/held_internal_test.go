package kubernetesapplication

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
)

// C65: an application says which objects of its resources are held.
func TestMarkHeld_ofResources(t *testing.T) {
	kar := &v1alpha1.KubernetesApplicationResource{}
	kar.Status.Held = []v1alpha1.Hold{{ObjectReference: v1alpha1.ObjectReference{Kind: "Deployment", Namespace: "shop", Name: "web"}, Rollback: "back", Wanted: "x"}}
	s := &scope{app: &v1alpha1.KubernetesApplication{}, resources: []resource{{}, {live: kar}}}
	s.markHeld()
	assert.True(t, conditions.IsTrue(s.app, v1alpha1.HeldCondition))
	assert.Contains(t, conditions.GetMessage(s.app, v1alpha1.HeldCondition), "ApplicationRollback shop/back holds Deployment shop/web")

	kar.Status.Held[0].Wanted = ""
	s.markHeld()
	assert.False(t, conditions.Has(s.app, v1alpha1.HeldCondition))
}
