package applicationinstallation_test

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// C46, K51
func TestInstallation_waitsForItsDefinition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	inst := w.install(nil)
	assert.Contains(t, hub.AwaitReason(w.World, inst, v1alpha1.DefinitionNotFoundReason), w.Namespace)
	definition := w.define(func(d *v1alpha1.ApplicationDefinitionSpec) { d.Versions = d.Versions[1:] })
	hub.Await(w.World, inst, "the version is missing", func(i *v1alpha1.ApplicationInstallation) bool {
		return conditions.GetMessage(i, v1alpha1.ReadyCondition) == `ApplicationDefinition "`+w.Namespace+`" has no version "1.0.0", it offers 1.1.0`
	})
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "1.1.0" })
	hub.AwaitReady(w.World, inst)
	assert.Equal(t, definition.Name, inst.Status.Application.Name)
}

// C47: what is installed keeps running when its definition is gone, and can be uninstalled.
func TestInstallation_outlivesItsDefinition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	definition := w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	require.NoError(t, w.Client.Delete(t.Context(), definition))
	hub.AwaitReason(w.World, inst, v1alpha1.DefinitionGoneReason)
	assert.True(t, conditions.IsStalled(inst))
	assert.True(t, w.Exists(&appsv1.Deployment{}, "web"))

	require.NoError(t, w.Client.Delete(t.Context(), inst))
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
	assert.False(t, w.Exists(&appsv1.Deployment{}, "web"))
}

// K52, C28, C47
func TestInstallation_goesWithAVersionThatIsRemovedByForce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	definition := w.define(nil)
	hub.AwaitReady(w.World, w.install(nil))
	hub.Change(w.World, definition, func(d *v1alpha1.ApplicationDefinition) {
		d.Annotations = map[string]string{v1alpha1.ForceRemoveAnnotation: "1.0.0"}
		d.Spec.Versions = d.Spec.Versions[1:]
	})
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
	assert.False(t, w.Exists(&appsv1.Deployment{}, "web"))
}

// K52: users of a cluster cannot keep what is removed by force.
func TestInstallation_isNotOrphanedByForce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	definition := w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.DeletionPolicy = v1alpha1.InstallationOrphan })
	hub.Change(w.World, definition, func(d *v1alpha1.ApplicationDefinition) {
		d.Annotations = map[string]string{v1alpha1.ForceRemoveAnnotation: "1.0.0"}
		d.Spec.Versions = d.Spec.Versions[1:]
	})
	w.AwaitGone(&v1alpha1.ApplicationInstallation{}, "web")
	assert.False(t, w.Exists(&appsv1.Deployment{}, "web"))
}

// C47: that an older version was removed by force says nothing about one that was never offered:
// what is installed stays until that is there.
func TestInstallation_staysWhenItsNextVersionIsNotThereYet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	definition := w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	hub.Change(w.World, definition, func(d *v1alpha1.ApplicationDefinition) {
		d.Annotations = map[string]string{v1alpha1.ForceRemoveAnnotation: "*"}
	})
	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "1.2.0" })
	hub.AwaitReason(w.World, inst, v1alpha1.DefinitionNotFoundReason)
	assert.True(t, w.Exists(&appsv1.Deployment{}, "web"))

	hub.Change(w.World, inst, func(i *v1alpha1.ApplicationInstallation) { i.Spec.ApplicationRef.Version = "1.1.0" })
	hub.AwaitReady(w.World, inst)
}

// C47: an empty item of the annotation names no version, not the one that is not known yet.
func TestInstallation_ofNoVersionStaysWhenAnotherIsRemovedByForce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	definition := w.define(nil)
	inst := w.install(func(s *v1alpha1.ApplicationInstallationSpec) { s.ApplicationRef.Version = "" })
	hub.AwaitReason(w.World, inst, v1alpha1.DefinitionNotFoundReason)
	hub.Change(w.World, definition, func(d *v1alpha1.ApplicationDefinition) {
		d.Annotations = map[string]string{v1alpha1.ForceRemoveAnnotation: "1.0.0,"}
		d.Finalizers = []string{"example.com/held"}
	})
	require.NoError(t, w.Client.Delete(t.Context(), definition))
	hub.Reconcile(w.World, inst)
	hub.Change(w.World, definition, func(d *v1alpha1.ApplicationDefinition) { d.Finalizers = nil })
	hub.Await(w.World, inst, "the definition is gone", func(i *v1alpha1.ApplicationInstallation) bool {
		return conditions.GetMessage(i, v1alpha1.ReadyCondition) == `the hub offers no ApplicationDefinition "`+w.Namespace+`" to this cluster`
	})
	assert.True(t, inst.DeletionTimestamp.IsZero())
}
