package applicationinstallation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// K3, K8: an installation that a commit takes out of one namespace and adds in another is there twice for a while, because
// what a commit adds is applied before what it removes is deleted. The new one waits for the release of the other, and
// installs its own once that is uninstalled.
func TestInstallation_movesToAnotherNamespaceOfTheHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.define(nil)
	target := &corev1.Namespace{ObjectMeta: objectMeta(w.Namespace + "-target")}
	require.NoError(t, w.Client.Create(t.Context(), target))
	into := func(s *v1alpha1.ApplicationInstallationSpec) {
		s.Namespace = &v1alpha1.TargetNamespace{Name: target.Name}
	}
	before := hub.AwaitReady(w.World, w.install(into))
	settings := &corev1.ConfigMap{}
	require.True(t, w.ExistsIn(target.Name, settings, "web"))
	first := settings.UID

	there := *w
	there.World = hub.NewWorld(t, w.Cluster)
	after := before.DeepCopy()
	after.ObjectMeta, after.Status = objectMeta("web"), v1alpha1.ApplicationInstallationStatus{}
	there.Create(after)
	assert.Contains(t, hub.AwaitReason(there.World, after, v1alpha1.ReleaseConflictReason), "another installation has installed a release of this name")
	require.True(t, w.ExistsIn(target.Name, settings, "web"))
	assert.Equal(t, first, settings.UID, "what is installed is left alone meanwhile")

	require.NoError(t, w.Client.Delete(t.Context(), before))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
	hub.AwaitReady(there.World, after)
	require.True(t, w.ExistsIn(target.Name, settings, "web"))
	assert.NotEqual(t, first, settings.UID)
}
