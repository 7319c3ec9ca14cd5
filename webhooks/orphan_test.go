package webhooks_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// K52, C28: users of a cluster keep nothing that the platform team withdraws where the definition, of which
// they see the copy, forbids it; the refusal names it and says what to do.
func TestInstallation_mustNotBeOrphaned(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	for why, set := range map[string]func(*v1alpha1.ApplicationDefinition){
		"spec.forbidOrphan": func(d *v1alpha1.ApplicationDefinition) { d.Spec.ForbidOrphan = true },
		"spec.enforced":     func(d *v1alpha1.ApplicationDefinition) { d.Spec.Enforced = true },
	} {
		t.Run(why, func(t *testing.T) {
			def := definition(t, admin, func(d *v1alpha1.ApplicationDefinition) {
				d.Annotations = map[string]string{v1alpha1.CopyOfAnnotation: "hub"}
				set(d)
			})
			refused := func(err error) {
				t.Helper()
				require.True(t, apierrors.IsInvalid(err), "%v", err)
				assert.ErrorContains(t, err, `spec.deletionPolicy: Forbidden: ApplicationDefinition "`+def.Name+`" forbids Orphan (`+why+
					`): leave the field out, and what is installed is uninstalled with the installation`)
			}
			inst := newInstallation(c.Namespace(t), def.Name, "v1.0.0")
			inst.Spec.DeletionPolicy = v1alpha1.InstallationOrphan
			refused(admin.Create(t.Context(), inst.DeepCopy()))
			inst.Spec.DeletionPolicy = ""
			require.NoError(t, admin.Create(t.Context(), inst))
			orphan := inst.DeepCopy()
			orphan.Spec.DeletionPolicy = v1alpha1.InstallationOrphan
			refused(admin.Update(t.Context(), orphan))
		})
	}
}

// K52: an installation that had the policy before its definition forbade it can be changed, with a warning.
func TestInstallation_keepsAPolicyThatIsForbidden(t *testing.T) {
	c := admission(t)
	admin, told := c.admin(t)
	def := definition(t, admin, nil)
	inst := newInstallation(c.Namespace(t), def.Name, "v1.0.0")
	inst.Spec.DeletionPolicy = v1alpha1.InstallationOrphan
	require.NoError(t, admin.Create(t.Context(), inst))
	def.Spec.ForbidOrphan = true
	require.NoError(t, admin.Update(t.Context(), def))
	warning := `spec.deletionPolicy: ApplicationDefinition "` + def.Name + `" forbids Orphan (spec.forbidOrphan): what is installed is uninstalled with the installation`
	inst.Spec.ApplicationRef.Version = "v1.1.0"
	require.NoError(t, admin.Update(t.Context(), inst))
	assert.Contains(t, told.take(), warning)
}

// K52: removal by force sets the policy to Delete first, which nothing that has changed since may prevent; any other
// change is still refused.
func TestInstallation_canAlwaysGiveUpOrphan(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	def := definition(t, admin, nil)
	inst := newInstallation(c.Namespace(t), def.Name, "v1.0.0")
	inst.Spec.DeletionPolicy = v1alpha1.InstallationOrphan
	require.NoError(t, admin.Create(t.Context(), inst))
	def.Spec.RequireServiceAccount = true
	require.NoError(t, admin.Update(t.Context(), def))
	err := eventuallyRefused(t, func() error {
		more := inst.DeepCopy()
		more.Spec.DeletionPolicy, more.Spec.ApplicationRef.Version = v1alpha1.InstallationDelete, "v1.1.0"
		return admin.Update(t.Context(), more, client.DryRunAll)
	})
	require.ErrorContains(t, err, "spec.serviceAccountName")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"deletionPolicy":"Delete"}}`))
	require.NoError(t, admin.Patch(t.Context(), inst, patch, client.FieldOwner(v1alpha1.FieldManager)))
	require.Equal(t, v1alpha1.InstallationDelete, inst.Spec.DeletionPolicy)
}
