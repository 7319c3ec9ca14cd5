package webhooks_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// with is a user who may write our kinds, and has these permissions.
func (c *cluster) with(t *testing.T, namespace string, permissions ...[]permission) client.Client {
	t.Helper()
	all := []rbacv1.PolicyRule{rule("", []string{"configmaps", "secrets"}, "create", "update"), write("*")}
	var cluster []rbacv1.PolicyRule
	for _, some := range permissions {
		for _, p := range some {
			if p.cluster {
				cluster = append(cluster, p.rule)
			} else {
				all = append(all, p.rule)
			}
		}
	}
	user := c.user(t, namespace, all...)
	admin, _ := c.admin(t)
	c.grant(t, admin, user.(named).name, "", append(cluster, write("applicationdefinitions"))...)
	return user
}

func created(t *testing.T, admin, user client.Client, obj client.Object) {
	t.Helper()
	require.NoError(t, create(t, user, obj))
	require.NoError(t, admin.Delete(t.Context(), obj))
}

// C35: all that is missing is said at once.
func TestAccess_namesEverything(t *testing.T) {
	c := admission(t)
	ns := c.Namespace(t)
	app := newApplication(ns)
	app.Spec.Components = []v1alpha1.ApplicationComponent{{Kind: "Service"}}
	app.Spec.HealthCheck = healthCheck(validPod)
	err := c.with(t, ns, nil).Create(t.Context(), app)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	for _, missing := range []string{"get services", "list services", "patch services", "delete services", "create pods", "in namespace \"" + ns + "\""} {
		assert.ErrorContains(t, err, missing)
	}
}

// C35: a kind that is yet to come is refused with what can be done about it, however much of the
// group the user may.
func TestAccess_namesTheWayOutForAKindToCome(t *testing.T) {
	c := admission(t)
	ns := c.Namespace(t)
	app := newApplication(ns)
	app.Spec.Components = []v1alpha1.ApplicationComponent{{Group: "databases.example.com", Kind: "Database"}}
	err := c.with(t, ns, []permission{in("databases.example.com", "databases", "*")}).Create(t.Context(), app)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, "kind Database.databases.example.com is not known yet: create what defines it first, or get permission for its whole group")
}

// A41: rights in one namespace are none in another.
func TestAccess_isThatOfTheNamespace(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	own, other := c.Namespace(t), c.Namespace(t)
	user := c.with(t, own, nil)
	require.NoError(t, user.Create(t.Context(), newApplication(own)))
	require.True(t, apierrors.IsForbidden(user.Create(t.Context(), newApplication(other))))

	app := newApplication(other)
	require.NoError(t, admin.Create(t.Context(), app))
	app.Spec.Description = "mine"
	require.True(t, apierrors.IsForbidden(user.Update(t.Context(), app)))
	require.True(t, apierrors.IsForbidden(user.Delete(t.Context(), app)))
	require.True(t, apierrors.IsForbidden(user.Get(t.Context(), client.ObjectKeyFromObject(app), app)))
}

// C49: who touches only metadata needs none of it; who touches the spec does.
func TestAccess_isCheckedWhenTheSpecChanges(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ns := c.Namespace(t)
	app := newApplication(ns)
	app.Spec.Components = []v1alpha1.ApplicationComponent{{Kind: "Service"}}
	require.NoError(t, admin.Create(t.Context(), app))
	user := c.with(t, ns, nil)

	app.Labels = map[string]string{"team": "a"}
	app.Finalizers = []string{"example.com/hold"}
	require.NoError(t, user.Update(t.Context(), app), "metadata")
	app.Spec.Description = "mine"
	require.True(t, apierrors.IsForbidden(user.Update(t.Context(), app)), "spec")

}

// C35, C49: a spec is looked at for as long as a controller acts on it, which is until
// the object is gone; nothing else of what is being deleted is.
func TestAccess_isCheckedToTheEnd(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	def := definition(t, admin, nil)
	ns := c.Namespace(t)
	user := c.with(t, ns, nil)
	for name, tc := range map[string]struct {
		object client.Object
		edit   func(client.Object)
	}{
		"Application": {newApplication(ns), func(o client.Object) {
			o.(*v1alpha1.Application).Spec.Components = []v1alpha1.ApplicationComponent{{Kind: "Secret"}}
		}},
		"ApplicationDefinition": {newDefinition("v1.0.0"), func(o client.Object) {
			o.(*v1alpha1.ApplicationDefinition).Spec.Versions[0].Template.Source.Helm.Credentials =
				&v1alpha1.SourceCredentials{SecretRef: v1alpha1.LocalReference{Name: "charts"}}
		}},
		"ApplicationInstallation": {newInstallation(ns, def.Name, "v1.0.0"), func(o client.Object) {
			o.(*v1alpha1.ApplicationInstallation).Spec.ValuesBlock = "a: 1"
		}},
		"GitSync": {newGitSync(ns), func(o client.Object) {
			o.(*v1alpha1.GitSync).Spec.ServiceAccountName = "deployer"
		}},
		"KubernetesCluster": {newCluster(ns, "berlin"), func(o client.Object) {
			o.(*v1alpha1.KubernetesCluster).Spec.KubeconfigSecretRef = nil
		}},
		"KubernetesCluster, without a spec": {&v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Name: "hub", Namespace: ns}}, func(o client.Object) {
			o.(*v1alpha1.KubernetesCluster).Spec.Paused = true
		}},
		"KubernetesApplication": {newKubernetesApplication(ns), func(o client.Object) {
			o.(*v1alpha1.KubernetesApplication).Spec.ResourceTemplates[0].Spec.Secrets = []v1alpha1.ResourceSecretReference{{Name: "sql"}}
		}},
		"KubernetesApplicationResource": {newKubernetesApplicationResource(ns, newObject("v1", "ConfigMap", "web")), func(o client.Object) {
			o.(*v1alpha1.KubernetesApplicationResource).Spec.Secrets = []v1alpha1.ResourceSecretReference{{Name: "sql"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := tc.object
			obj.SetFinalizers([]string{"example.com/hold"})
			require.NoError(t, admin.Create(t.Context(), obj))
			require.NoError(t, admin.Delete(t.Context(), obj))
			require.NoError(t, user.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
			edited := obj.DeepCopyObject().(client.Object)
			tc.edit(edited)
			err := user.Update(t.Context(), edited)
			assert.True(t, apierrors.IsForbidden(err), "its spec: %v", err)
			obj.SetFinalizers(nil)
			require.NoError(t, user.Update(t.Context(), obj), "its finalizer")
		})
	}
}

// C35, C37, C38: who writes in the system namespace has no more rights than elsewhere.
func TestAccess_inTheSystemNamespace(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ns := v1alpha1.DefaultSystemNamespace
	user := c.with(t, ns, nil)
	require.True(t, apierrors.IsForbidden(user.Create(t.Context(), newCluster(ns, ""))), "Waybill's rights, for `create` and `use`")
	sync := newGitSync(ns)
	require.True(t, apierrors.IsForbidden(user.Create(t.Context(), sync)), "Waybill's own account is one of many there")
	created(t, admin, c.with(t, ns, []permission{in("", "serviceaccounts", "impersonate")}), newGitSync(ns))
}
