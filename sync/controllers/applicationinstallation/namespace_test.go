package applicationinstallation_test

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// K3, K37: a namespace that is deleted under what is installed there is created again if the installation asks for it,
// and everything in it.
func TestInstallation_itsNamespaceIsTakenAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	target := &corev1.Namespace{ObjectMeta: objectMeta(w.Namespace + "-target")}
	inst := hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.Namespace = &v1alpha1.TargetNamespace{Name: target.Name, Create: true, Labels: map[string]string{"team": "a"}}
	}))
	require.True(t, w.ExistsIn("", target, target.Name))
	before := target.UID
	require.NoError(t, w.Client.Delete(t.Context(), target))
	require.True(t, w.Eventually(func() bool {
		return w.ExistsIn("", target, target.Name) && target.UID != before && w.ExistsIn(target.Name, &appsv1.Deployment{}, "web")
	}), "it is there again: %s", conditions.GetMessage(inst, v1alpha1.ReadyCondition))
	assert.Equal(t, "a", target.Labels["team"])
	hub.AwaitReady(w.World, inst)
}

// K37, K53: one that another user has to create is awaited, by name; the installation can be deleted meanwhile.
func TestInstallation_itsNamespaceIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	target := &corev1.Namespace{ObjectMeta: objectMeta(w.Namespace + "-target")}
	require.NoError(t, w.Client.Create(t.Context(), target))
	inst := hub.AwaitReady(w.World, w.install(func(s *v1alpha1.ApplicationInstallationSpec) {
		s.Namespace = &v1alpha1.TargetNamespace{Name: target.Name}
	}))
	require.NoError(t, w.Client.Delete(t.Context(), target))
	assert.Contains(t, hub.AwaitReason(w.World, inst, v1alpha1.NamespaceNotFoundReason), "namespace "+target.Name+" does not exist")
	assert.True(t, conditions.IsFalse(inst, v1alpha1.InstalledCondition))
	require.NoError(t, w.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: objectMeta(target.Name)}))
	hub.AwaitReady(w.World, inst)
	assert.True(t, w.ExistsIn(target.Name, &appsv1.Deployment{}, "web"))

	require.NoError(t, w.Client.Delete(t.Context(), target))
	hub.AwaitReason(w.World, inst, v1alpha1.NamespaceNotFoundReason)
	require.NoError(t, w.Client.Delete(t.Context(), inst))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
}
