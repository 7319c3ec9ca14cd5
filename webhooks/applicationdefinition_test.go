package webhooks_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// K27, C27, P5
func TestDefinition_versionsAreUnique(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	err := admin.Create(t.Context(), newDefinition("v1.0.0", "1.0.0"))
	require.True(t, apierrors.IsInvalid(err), "equal as semantic versions: %v", err)
	assert.ErrorContains(t, err, "spec.versions[1].version")
	require.True(t, apierrors.IsInvalid(admin.Create(t.Context(), newDefinition("v1.0.0", "v1.0.0"))), "the same text")
}

// C27
func TestDefinition_hasOneOwner(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	const first, second = "hub/GitSync/team-a/catalog", "hub/GitSync/team-b/catalog"
	owned := func(owner string) func(*v1alpha1.ApplicationDefinition) {
		return func(d *v1alpha1.ApplicationDefinition) {
			d.Annotations = map[string]string{v1alpha1.OwnerAnnotation: owner}
		}
	}
	def := definition(t, admin, owned(first))
	def.Labels = map[string]string{"a": "b"}
	require.NoError(t, admin.Update(t.Context(), def), "its owner")

	owned(second)(def)
	err := admin.Update(t.Context(), def)
	require.True(t, apierrors.IsInvalid(err), "another user: %v", err)
	assert.ErrorContains(t, err, first, "names the owner")

	def.Annotations[v1alpha1.AdoptAnnotation] = "true"
	require.NoError(t, admin.Update(t.Context(), def), "a takeover that is meant (C13)")
}

// usedVersion makes a definition whose version v1.0.0 is used.
func usedVersion(t *testing.T, admin client.Client) *v1alpha1.ApplicationDefinition {
	t.Helper()
	def := definition(t, admin, nil)
	def.Status.UsedBy = []v1alpha1.VersionUsage{
		{Version: "v1.0.0", Count: 3, Installations: []string{"waybill-system/berlin/team-a/shop", "waybill-system/berlin/team-b/shop"}},
		{Version: "v1.1.0", Count: 0},
	}
	require.NoError(t, admin.Status().Update(t.Context(), def))
	t.Cleanup(func() {
		def.Annotations = map[string]string{v1alpha1.ForceRemoveAnnotation: "*"}
		_ = admin.Patch(afterwards(t), def, client.Merge)
	})
	return def
}

// C28, C47
func TestDefinition_versionInUseStays(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	def := usedVersion(t, admin)
	all := def.Spec.Versions

	def.Spec.Versions = all[:1]
	require.NoError(t, admin.Update(t.Context(), def), "v1.1.0 is not used")
	def.Spec.Versions = all[1:]
	err := admin.Update(t.Context(), def)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, "team-a/shop")
	assert.ErrorContains(t, err, "and 1 more")

	def.Annotations = map[string]string{v1alpha1.ForceRemoveAnnotation: "v1.1.0"}
	require.Error(t, admin.Update(t.Context(), def), "another one is let go")
	def.Annotations = map[string]string{v1alpha1.ForceRemoveAnnotation: "v1.1.0, v1.0.0"}
	require.NoError(t, admin.Update(t.Context(), def))
}

// C28, C47
func TestDefinition_inUseStays(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	def := usedVersion(t, admin)
	err := admin.Delete(t.Context(), def)
	require.True(t, apierrors.IsConflict(err), "%v", err)
	assert.ErrorContains(t, err, "team-b/shop")
	assert.ErrorContains(t, err, "; delete them, or annotate")
	def.Spec.Enforced = true
	require.NoError(t, admin.Update(t.Context(), def))
	assert.ErrorContains(t, admin.Delete(t.Context(), def), "; unset spec.enforced, then delete them, or annotate")

	def.Annotations = map[string]string{v1alpha1.ForceRemoveAnnotation: "*"}
	require.NoError(t, admin.Update(t.Context(), def))
	require.NoError(t, admin.Delete(t.Context(), def))
}

// C45
func TestDefinition_copyIsTheDriversOwn(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ours := client.FieldOwner(v1alpha1.FieldManager)
	copied := func() *v1alpha1.ApplicationDefinition {
		d := newDefinition("v1.0.0")
		d.Spec.Versions[0].Template = nil
		d.Annotations = map[string]string{v1alpha1.CopyOfAnnotation: "hub"}
		return d
	}
	def := copied()
	require.True(t, apierrors.IsForbidden(admin.Create(t.Context(), def)), "an administrator by hand")
	require.NoError(t, admin.Create(t.Context(), def, ours), "the driver")

	def.Spec.Description = "mine"
	err := admin.Update(t.Context(), def)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, "in the hub")
	delete(def.Annotations, v1alpha1.CopyOfAnnotation)
	def.Spec.Versions = newDefinition("v1.0.0").Spec.Versions
	require.True(t, apierrors.IsForbidden(admin.Update(t.Context(), def)), "nor is it made an original")

	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(def), def))
	def.Annotations[v1alpha1.CopyOfAnnotation] = "other"
	require.True(t, apierrors.IsForbidden(admin.Update(t.Context(), def)), "nor a copy of another hub")

	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(def), def))
	def.Labels = map[string]string{"a": "b"}
	require.NoError(t, admin.Update(t.Context(), def), "labels of one's own")

	user := c.user(t, "", write("applicationdefinitions"))
	require.True(t, apierrors.IsForbidden(user.Create(t.Context(), copied(), ours)), "the name of the field manager is no right")
	require.True(t, apierrors.IsForbidden(user.Delete(t.Context(), def)))
	driver := c.user(t, "", write("applicationdefinitions"), rule(v1alpha1.Group, []string{"applicationdefinitions"}, "copy"))
	require.NoError(t, driver.Delete(t.Context(), def))
}

// C45: only a copy goes without a template.
func TestDefinition_needsTemplates(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	def := newDefinition("v1.0.0")
	def.Spec.Versions[0].Template = nil
	err := admin.Create(t.Context(), def)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, "spec.versions[0].template")
}
