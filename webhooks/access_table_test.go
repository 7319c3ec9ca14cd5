package webhooks_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// deputy is an object that acts for the user who writes it, and what that user must be allowed to.
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

// deputies are what the table of operations.md lists, by the row that each shows and what is special
// about it.
func deputies(t *testing.T, c *cluster) map[string]deputy {
	t.Helper()
	admin, _ := c.admin(t)
	def := definition(t, admin, nil)
	acting := definition(t, admin, func(d *v1alpha1.ApplicationDefinition) { d.Spec.ServiceAccountName = "chosen" })
	target := c.Namespace(t)
	install := inCluster(in(v1alpha1.Group, "applicationdefinitions", "install", def.Name))
	createPods := rule("", []string{"pods"}, "create")
	all := dataDeputies(t, admin)
	maps.Copy(all, map[string]deputy{
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
		"installation, dependsOn": {"its status shows whether others are ready, and conditions more of them", func(ns string) client.Object {
			i := newInstallation(ns, def.Name, "v1.0.0")
			i.Spec.DependsOn = []v1alpha1.InstallationDependency{{Name: "db"}, {Name: "cache", Namespace: target}}
			return i
		}, []permission{
			install, inCluster(in(v1alpha1.Group, "applicationinstallations", "get", "cache")),
		}, nil},
		"installation, beforeUpgrade": {"snapshots run hooks, or scale to zero, as a class says that may come", func(ns string) client.Object {
			i := newInstallation(ns, def.Name, "v1.0.0")
			i.Spec.Namespace = &v1alpha1.TargetNamespace{Name: target}
			i.Spec.BeforeUpgrade = &v1alpha1.BeforeUpgrade{Snapshot: v1alpha1.SnapshotTry}
			return i
		}, []permission{
			install, inCluster(in("", "namespaces", "install-into", target)), inCluster(in(v1alpha1.Group, "applicationsnapshots", "create")),
			inCluster(in("", "pods/exec", "create")), inCluster(in("apps", "deployments/scale", "update")), inCluster(in("apps", "statefulsets/scale", "update")),
		}, nil},
		"installation, beforeUpgrade, atomic": {"an upgrade that fails replaces volumes", func(ns string) client.Object {
			i := newInstallation(ns, def.Name, "v1.0.0")
			i.Spec.Namespace = &v1alpha1.TargetNamespace{Name: target}
			i.Spec.BeforeUpgrade = &v1alpha1.BeforeUpgrade{Snapshot: v1alpha1.SnapshotRequire}
			i.Spec.DeployOptions = &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{Atomic: true, Wait: true}}
			return i
		}, []permission{
			install, inCluster(in("", "namespaces", "install-into", target)), inCluster(in(v1alpha1.Group, "applicationsnapshots", "create")),
			inCluster(in("", "pods/exec", "create")), inCluster(in("apps", "deployments/scale", "update")), inCluster(in("apps", "statefulsets/scale", "update")),
			inCluster(in(v1alpha1.Group, "applicationrollbacks", "create")), inCluster(in("", "persistentvolumeclaims", "create")),
			inCluster(in("", "persistentvolumeclaims", "update")), inCluster(in("", "persistentvolumeclaims", "delete")),
		}, nil},
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
		"KubernetesCluster, installations": {"they are created with the rights of the kubeconfig", func(ns string) client.Object {
			k := newCluster(ns, "berlin")
			k.Annotations = map[string]string{v1alpha1.InitialInstallationsAnnotation: initialList(def.Name)}
			return k
		}, []permission{in("", "secrets", "get", "berlin"), in(v1alpha1.Group, "kubernetesclusters", "use"), install}, nil},
		"KubernetesCluster, list": {"what is in the list is created, too", func(ns string) client.Object {
			m := protectedMap(ns, "template")
			m.Data["installations.yaml"] = initialList(def.Name)
			require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), m)))
			k := newCluster(ns, "berlin")
			k.Spec.InstallationsFrom = &v1alpha1.InstallationsReference{Name: "template"}
			return k
		}, []permission{
			in("", "secrets", "get", "berlin"), in("", "configmaps", "get", "template"), in(v1alpha1.Group, "kubernetesclusters", "use"), install,
		}, nil},
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
		"definition, enforced": {"it is installed in every cluster", func(string) client.Object {
			d := newDefinition("v1")
			d.Name, d.GenerateName, d.Spec.Enforced = "enforced-by-table", "", true
			return d
		}, []permission{
			inCluster(in(v1alpha1.Group, "kubernetesclusters", "use")), inCluster(in(v1alpha1.Group, "applicationdefinitions", "install", "enforced-by-table")),
		}, nil},
		"installation, account": {"it acts as a ServiceAccount", func(ns string) client.Object {
			i := newInstallation(ns, def.Name, "v1.0.0")
			i.Spec.ServiceAccountName = "deployer"
			return i
		}, []permission{in("", "serviceaccounts", "impersonate", "deployer"), install}, &createPods},
		"installation, account of the definition": {"whoever has chosen it", func(ns string) client.Object {
			return newInstallation(ns, acting.Name, "v1.0.0")
		}, []permission{
			in("", "serviceaccounts", "impersonate", "chosen"), inCluster(in(v1alpha1.Group, "applicationdefinitions", "install", acting.Name)),
		}, &createPods},
		"definition, copy": {"it is what a hub offers", func(string) client.Object {
			d := newDefinition("v1")
			d.Spec.Versions[0].Template = nil
			d.Annotations = map[string]string{v1alpha1.CopyOfAnnotation: "a-hub"}
			return d
		}, []permission{inCluster(in(v1alpha1.Group, "applicationdefinitions", "copy"))}, nil},
		"HookAction": {"others run it, too", func(ns string) client.Object {
			return &v1alpha1.HookAction{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "lock"},
				Spec:       v1alpha1.HookActionSpec{Action: v1alpha1.HookHandler{Exec: v1alpha1.ExecAction{Command: []string{"sync"}}}},
			}
		}, []permission{in("", "pods/exec", "create")}, nil},
		"ExecutionHook": {"it runs a command", func(ns string) client.Object {
			return &v1alpha1.ExecutionHook{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "lock"},
				Spec:       v1alpha1.ExecutionHookSpec{ActionName: "lock", Pods: []v1alpha1.HookPod{{Name: "db-0"}}},
			}
		}, []permission{in("", "pods/exec", "create")}, nil},
		"values": {"any installation may take values from it", func(ns string) client.Object {
			return protectedMap(ns, "shared")
		}, []permission{inCluster(in(v1alpha1.Group, "applicationdefinitions", "install"))}, nil},
		"values, list of a KubernetesCluster": {"it decides what is installed there", func(ns string) client.Object {
			k := newCluster(ns, "berlin")
			k.Name, k.Spec.InstallationsFrom = "taking", &v1alpha1.InstallationsReference{Name: "list"}
			require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), k, client.FieldOwner(v1alpha1.FieldManager))))
			return protectedMap(ns, "list")
		}, []permission{in(v1alpha1.Group, "kubernetesclusters", "use"), inCluster(in(v1alpha1.Group, "applicationdefinitions", "install"))}, nil},
		"values, of an installation": {"it decides what is installed", func(ns string) client.Object {
			i := newInstallation(ns, def.Name, "v1.0.0")
			i.Name, i.Spec.ValuesFrom = "taking", []v1alpha1.ValuesReference{{Kind: "ConfigMap", Name: "taken"}}
			require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), i)))
			return protectedMap(ns, "taken")
		}, []permission{install}, nil},
	})
	return all
}

func protectedMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.ValuesLabel: v1alpha1.ValuesProtected}},
		Data:       map[string]string{"values.yaml": "a: 1"},
	}
}

// C35, C37, C38, C60: no user gains rights through us: each user is one of RBAC's, with a certificate.
func TestAccess(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	for name, tc := range deputies(t, c) {
		t.Run(name, func(t *testing.T) {
			ns := c.Namespace(t)
			for i, left := range tc.needed {
				err := create(t, c.with(t, ns, tc.needed[:i], tc.needed[i+1:]), tc.object(ns))
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

// rows are the rows of the table by the first word of the names of cases.
var rows = map[string]string{
	"GitSync": "a GitSync", "KubernetesCluster": "a KubernetesCluster", "Application": "an Application",
	"KubernetesApplication":         "a KubernetesApplication, a KubernetesApplicationResource",
	"KubernetesApplicationResource": "a KubernetesApplication, a KubernetesApplicationResource",
	"definition":                    "an ApplicationDefinition", "installation": "an ApplicationInstallation",
	"HookAction": "a HookAction, an ExecutionHook", "ExecutionHook": "a HookAction, an ExecutionHook",
	"ApplicationSnapshot": "an ApplicationSnapshot", "StatefulApplication": "a StatefulApplication with a `source`",
	"ApplicationRollback": "an ApplicationRollback",
	"values":              "a Secret or ConfigMap with the label `apps.waybill.dev/values: protected`",
}

// C60: what operations.md says of rights is shown above: every row, and every verb of it.
func TestAccess_showsTheTableOfThePage(t *testing.T) {
	page, err := os.ReadFile("../api/docs/operations.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| writing | needs |\n|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	shown := map[string][]string{}
	for name, tc := range deputies(t, admission(t)) {
		row := rows[strings.SplitN(name, ",", 2)[0]]
		require.NotEmpty(t, row, name)
		for _, p := range tc.needed {
			shown[row] = append(shown[row], p.rule.Verbs...)
		}
		if tc.or != nil {
			shown[row] = append(shown[row], tc.or.Verbs...)
		}
	}
	verb := regexp.MustCompile("`(get|list|update|patch|delete|create|use|copy|install|install-into|impersonate|restore|escalate|bind)`")
	for _, line := range strings.Split(strings.TrimSpace(table), "\n") {
		cells := strings.Split(line, "|")
		require.Len(t, cells, 4, line)
		row := strings.TrimSpace(cells[1])
		require.Contains(t, shown, row, "no case shows this row")
		for _, match := range verb.FindAllStringSubmatch(cells[2], -1) {
			assert.True(t, slices.Contains(shown[row], match[1]), "no case of %q shows %s", row, match[1])
		}
		delete(shown, row)
	}
	assert.Empty(t, shown, "not in the table")
}

// create creates an object as who delivers it would.
func create(t *testing.T, user client.Client, obj client.Object) error {
	t.Helper()
	if obj.GetAnnotations()[v1alpha1.CopyOfAnnotation] != "" {
		return user.Create(t.Context(), obj, client.FieldOwner(v1alpha1.FieldManager))
	}
	return user.Create(t.Context(), obj)
}
