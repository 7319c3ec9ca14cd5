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

// C35, K55: a seed gets the credentials of all sources, so that only those may name one who may read them.
func TestSeed_isForThoseWhoMayReadTheCredentials(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	seed := func(namespace string) *v1alpha1.KubernetesCluster {
		kc := newCluster(namespace, "berlin")
		kc.Name, kc.Spec.Role = "seed", v1alpha1.ClusterRoleSeed
		return kc
	}
	err := admin.Create(t.Context(), seed(c.Namespace(t)))
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, "spec.role: Invalid value: \"Seed\": is allowed in namespace waybill-system only")

	one := rule("", []string{"secrets"}, "get")
	one.ResourceNames = []string{"berlin"}
	user := c.user(t, "", write("kubernetesclusters"), one)
	err = user.Create(t.Context(), seed(v1alpha1.DefaultSystemNamespace))
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, "spec.role is Seed, which gets the source credentials")

	user = c.user(t, "", write("kubernetesclusters"), rule("", []string{"secrets"}, "get"))
	kc := seed(v1alpha1.DefaultSystemNamespace)
	require.NoError(t, user.Create(t.Context(), kc))
	kc.Spec.Role = v1alpha1.ClusterRoleUser
	err = user.Update(t.Context(), kc)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, "delete and recreate the KubernetesCluster")
	require.NoError(t, admin.Delete(t.Context(), kc))
}

// K32, C45, C47: a copy in a seed is the hub's. The seed's controller reports on it and holds it while it is in
// use; only the hub has it go all the same.
func TestDefinition_copyInASeed(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	hub := client.FieldOwner(v1alpha1.FieldManager)
	def := newDefinition("v1.0.0")
	def.Spec.Versions = append(def.Spec.Versions, newDefinition("v1.1.0").Spec.Versions...)
	def.Annotations = map[string]string{v1alpha1.CopyOfAnnotation: "hub"}
	require.NoError(t, admin.Create(t.Context(), def, hub))

	controller := c.user(t, "", write("applicationdefinitions"), write("applicationdefinitions/status"))
	def.Finalizers = []string{v1alpha1.Finalizer}
	require.NoError(t, controller.Update(t.Context(), def), "it needs no right to write copies for that")
	def.Status.UsedBy = []v1alpha1.VersionUsage{{Version: "v1.0.0", Count: 1, Installations: []string{"waybill-system/berlin/apps/shop"}}}
	require.NoError(t, controller.Status().Update(t.Context(), def))

	def.Annotations[v1alpha1.ForceRemoveAnnotation] = "*"
	err := admin.Update(t.Context(), def.DeepCopy())
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, "change the definition in the hub")
	delete(def.Annotations, v1alpha1.ForceRemoveAnnotation)
	require.True(t, apierrors.IsConflict(admin.Delete(t.Context(), def.DeepCopy())), "it is in use")

	def.Spec.Versions = def.Spec.Versions[1:]
	err = admin.Update(t.Context(), def.DeepCopy(), hub)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, "waybill-system/berlin/apps/shop", "also the hub is told, and says so")
	def.Annotations[v1alpha1.ForceRemoveAnnotation] = "v1.0.0"
	require.NoError(t, admin.Update(t.Context(), def, hub))
	require.NoError(t, admin.Delete(t.Context(), def))
	release := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	require.NoError(t, controller.Patch(t.Context(), def, release))
}
