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

// deputy is an object that acts for whoever writes it, and what that one must be allowed to.
type deputy struct {
	reason string
	object func(namespace string) client.Object
	// needed are the permissions, one rule each; leaving any out is refused, naming it.
	needed []permission
	// or is enough instead of the first of needed.
	or *rbacv1.PolicyRule
}

type permission struct {
	rule    rbacv1.PolicyRule
	cluster bool   // granted in the whole cluster
	named   string // what the error says of it
}

func in(group, resource string, verb string, names ...string) permission {
	r := rule(group, []string{resource}, verb)
	r.ResourceNames = names
	full := resource
	if group != "" {
		full += "." + group
	}
	return permission{rule: r, named: verb + " " + full}
}

func inCluster(p permission) permission { p.cluster = true; return p }

// C35, C37, C38: nobody gains rights through us.
func TestAccess(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	def := definition(t, admin, nil)
	target := c.Namespace(t)
	install := inCluster(in(v1alpha1.Group, "applicationdefinitions", "install", def.Name))
	createPods := rule("", []string{"pods"}, "create")

	for name, tc := range map[string]deputy{
		"Application, Own": {"what it lists is deleted with it", func(ns string) client.Object {
			a := newApplication(ns)
			a.Spec.Components = []v1alpha1.ApplicationComponent{{Group: "apps", Kind: "StatefulSet"}, {Kind: "Service"}}
			return a
		}, []permission{
			in("apps", "statefulsets", "get"), in("apps", "statefulsets", "list"), in("apps", "statefulsets", "patch"), in("apps", "statefulsets", "delete"),
			in("", "services", "get"), in("", "services", "list"), in("", "services", "patch"), in("", "services", "delete"),
		}, nil},
		"Application, Observe": {"it shows what is there, and marks it", func(ns string) client.Object {
			a := newApplication(ns)
			a.Spec.Ownership = v1alpha1.OwnershipObserve
			a.Spec.Components = []v1alpha1.ApplicationComponent{{Kind: "Secret"}}
			return a
		}, []permission{in("", "secrets", "get"), in("", "secrets", "list"), in("", "secrets", "patch")}, nil},
		"Application, kind to come": {"it would own what others make of the kind once there is one", func(ns string) client.Object {
			a := newApplication(ns)
			a.Spec.Components = []v1alpha1.ApplicationComponent{{Group: "databases.example.com", Kind: "Database"}}
			return a
		}, []permission{
			in("databases.example.com", "*", "get"), in("databases.example.com", "*", "list"),
			in("databases.example.com", "*", "patch"), in("databases.example.com", "*", "delete"),
		}, nil},
		"Application, health check": {"it runs a Pod", func(ns string) client.Object {
			a := newApplication(ns)
			a.Spec.HealthCheck = healthCheck(validPod)
			return a
		}, []permission{in("", "pods", "create")}, nil},
		"installation": {"the chart runs with Waybill's rights", func(ns string) client.Object {
			return newInstallation(ns, def.Name, "v1.0.0")
		}, []permission{install}, nil},
		"installation, elsewhere": {"into the namespace of others", func(ns string) client.Object {
			i := newInstallation(ns, def.Name, "v1.0.0")
			i.Spec.Namespace = &v1alpha1.TargetNamespace{Name: target, Create: true, Labels: map[string]string{"a": "b"}}
			return i
		}, []permission{
			install, inCluster(in("", "namespaces", "install-into", target)),
			inCluster(in("", "namespaces", "create")), inCluster(in("", "namespaces", "patch", target)),
		}, nil},
		"installation, values": {"they show in the release", func(ns string) client.Object {
			i := newInstallation(ns, def.Name, "v1.0.0")
			i.Spec.ValuesFrom = []v1alpha1.ValuesReference{{Kind: "Secret", Name: "values"}, {Kind: "ConfigMap", Name: "values"}}
			return i
		}, []permission{install, in("", "secrets", "get", "values"), in("", "configmaps", "get", "values")}, nil},
		"GitSync": {"it acts as a ServiceAccount", func(ns string) client.Object { return newGitSync(ns) },
			[]permission{in("", "serviceaccounts", "impersonate", "default")}, &createPods},
		"GitSync, all": {"and reads a Secret, and reaches clusters", func(ns string) client.Object {
			g := newGitSync(ns)
			g.Spec.ServiceAccountName = "deployer"
			g.Spec.SecretRef = &v1alpha1.LocalReference{Name: "git"}
			g.Spec.ClusterSelector = newApplication(ns).Spec.Selector
			return g
		}, []permission{
			in("", "serviceaccounts", "impersonate", "deployer"), in("", "secrets", "get", "git"),
			in(v1alpha1.Group, "kubernetesclusters", "use"),
		}, &createPods},
		"KubernetesCluster": {"who may use it has the rights of the kubeconfig", func(ns string) client.Object {
			return newCluster(ns, "berlin")
		}, []permission{in("", "secrets", "get", "berlin")}, nil},
		"KubernetesCluster, this one": {"who may use it has Waybill's rights", func(ns string) client.Object {
			return newCluster(ns, "")
		}, []permission{inCluster(in("*", "*", "*"))}, nil},
		"KubernetesApplication": {"it runs in a cluster with full rights, and takes Secrets there", func(ns string) client.Object {
			a := newKubernetesApplication(ns)
			a.Spec.ResourceTemplates[0].Spec.Secrets = []v1alpha1.ResourceSecretReference{{Name: "sql"}, {Name: "cache"}}
			return a
		}, []permission{in(v1alpha1.Group, "kubernetesclusters", "use"), in("", "secrets", "get", "sql"), in("", "secrets", "get", "cache")}, nil},
		"KubernetesApplicationResource": {"also one that no application made", func(ns string) client.Object {
			r := newKubernetesApplicationResource(ns, newObject("v1", "ConfigMap", "web"))
			r.Spec.Secrets = []v1alpha1.ResourceSecretReference{{Name: "sql"}}
			return r
		}, []permission{in(v1alpha1.Group, "kubernetesclusters", "use"), in("", "secrets", "get", "sql")}, nil},
		"definition": {"it reads Secrets of the system namespace", func(string) client.Object {
			d := newDefinition("v1")
			d.Spec.Versions[0].Template.Source.Helm.Credentials = &v1alpha1.SourceCredentials{SecretRef: v1alpha1.LocalReference{Name: "charts"}}
			return d
		}, []permission{inCluster(in("", "secrets", "get", "charts"))}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ns := c.Namespace(t)
			for i, left := range tc.needed {
				err := c.with(t, ns, tc.needed[:i], tc.needed[i+1:]).Create(t.Context(), tc.object(ns))
				require.True(t, apierrors.IsForbidden(err), "without %s: %v", left.named, err)
				assert.ErrorContains(t, err, left.named, tc.reason)
			}
			if tc.or != nil {
				rest := append([]permission{{rule: *tc.or}}, tc.needed[1:]...)
				created(t, admin, c.with(t, ns, rest), tc.object(ns))
			}
			created(t, admin, c.with(t, ns, tc.needed), tc.object(ns))
		})
	}
}

// with is a user who may write our kinds, and has these permissions.
func (c *cluster) with(t *testing.T, namespace string, permissions ...[]permission) client.Client {
	t.Helper()
	all := []rbacv1.PolicyRule{write("*")}
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
	require.NoError(t, user.Create(t.Context(), obj))
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
	assert.ErrorContains(t, err, "kind Database.databases.example.com is not known yet: create what defines it first, or hold the right on its whole group")
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

// C35, C49: a spec is looked at for as long as there is somebody who acts on it, which is until
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
