package webhooks_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/render/helm"
)

// bound is a role and where it is bound: in the namespaces of the person, in all of the cluster, or in
// the system namespace.
type bound struct{ kind, role, where string }

const (
	theirs      = "theirs"
	everywhere  = "everywhere"
	systemwards = "system"
)

// people are the columns of the table, by what api/docs/access.md binds them to. The roles that others
// are added to are bound beside them: adding them up is another controller's, which other tests show.
var people = map[string][]bound{
	"viewer":        {{"ClusterRole", "view", theirs}, {"ClusterRole", "waybill-view", theirs}},
	"tenant":        {{"ClusterRole", "edit", theirs}, {"ClusterRole", "waybill-view", theirs}, {"ClusterRole", "waybill-edit", theirs}, {"ClusterRole", "install-given", theirs}},
	"administrator": {{"ClusterRole", "admin", theirs}, {"ClusterRole", "waybill-view", theirs}, {"ClusterRole", "waybill-edit", theirs}, {"ClusterRole", "waybill-admin", theirs}, {"ClusterRole", "waybill-installer", everywhere}},
	"publisher":     {{"ClusterRole", "waybill-publisher", everywhere}, {"Role", "waybill-source-secrets", systemwards}},
	"fleet":         {{"ClusterRole", "waybill-cluster-admin", theirs}, {"ClusterRole", "write-placed", theirs}},
	"data":          {{"ClusterRole", "waybill-data-admin", everywhere}},
}

// alone leaves out what would add the roles to those of Kubernetes, and give the catalog to all, in a
// cluster that other tests share.
func alone(o client.Object) client.Object {
	for label := range o.GetLabels() {
		if strings.HasPrefix(label, "rbac.authorization.k8s.io/") {
			labels := o.GetLabels()
			delete(labels, label)
			o.SetLabels(labels)
		}
	}
	return o
}

// rolesOfTheChart creates the roles that the chart makes for people, once.
var rolesOfTheChart sync.Once

func createRoles(t *testing.T, admin client.Client) {
	t.Helper()
	chart, err := loader.LoadDir("../charts/waybill")
	require.NoError(t, err)
	rendered, err := helm.Render(t.Context(), chart, helm.Options{
		ReleaseName: "waybill", Namespace: v1alpha1.DefaultSystemNamespace,
		Values: map[string]any{"image": map[string]any{"repository": "example.com/waybill"}, "userRoles": map[string]any{"sourceSecrets": []any{"charts"}}},
	})
	require.NoError(t, err)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DefaultSystemNamespace}}
	require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), ns)))
	made := []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "install-given"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{v1alpha1.Group}, Resources: []string{"applicationdefinitions"}, ResourceNames: []string{"given"}, Verbs: []string{"install"}},
		}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "write-placed"}, Rules: []rbacv1.PolicyRule{
			write("kubernetesapplications"), {APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"berlin"}, Verbs: []string{"get"}},
		}},
	}
	for _, o := range rendered.Objects {
		if strings.HasSuffix(o.File, "/user-roles.yaml") && o.GetKind() != "ClusterRoleBinding" {
			made = append(made, alone(o.Unstructured))
		}
	}
	for _, o := range made {
		require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), o)), o.GetName())
	}
}

// person returns a client of a user of that column, and the two namespaces of theirs.
func (c *cluster) person(t *testing.T, column string) (client.Client, []string) {
	t.Helper()
	admin, _ := c.admin(t)
	namespaces := []string{c.Namespace(t), c.Namespace(t)}
	name := fmt.Sprintf("%s-%s", column, namespaces[0])
	roles := append([]bound{{"ClusterRole", "waybill-catalog", everywhere}}, people[column]...)
	for n, b := range roles {
		subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: b.kind, Name: b.role}
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, n)}
		within := map[string][]string{theirs: namespaces, systemwards: {v1alpha1.DefaultSystemNamespace}}[b.where]
		if b.where == everywhere {
			require.NoError(t, admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}))
		}
		for _, ns := range within {
			meta.Namespace = ns
			require.NoError(t, admin.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}))
		}
	}
	config, err := c.AddUser(name)
	require.NoError(t, err)
	as, _ := newClient(t, config, c.mapper(t))
	last := roles[len(roles)-1]
	c.awaitBound(t, name, last, namespaces[1])
	return as, namespaces
}

// awaitBound waits until the API server knows of the last binding that was made for a user.
func (c *cluster) awaitBound(t *testing.T, user string, last bound, namespace string) {
	t.Helper()
	admin, _ := c.admin(t)
	where := map[string]string{theirs: namespace, systemwards: v1alpha1.DefaultSystemNamespace}[last.where]
	var rules []rbacv1.PolicyRule
	if last.kind == "Role" {
		role := &rbacv1.Role{}
		require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Namespace: where, Name: last.role}, role))
		rules = role.Rules
	} else {
		role := &rbacv1.ClusterRole{}
		require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Name: last.role}, role))
		rules = role.Rules
	}
	c.AwaitGranted(t, user, where, rules[len(rules)-1])
}

// ask is a request of a person, in a namespace of theirs; nothing is kept of what it writes.
type ask func(t *testing.T, as client.Client, namespaces []string) error

func creating(object func(namespaces []string) client.Object) ask {
	return func(t *testing.T, as client.Client, namespaces []string) error {
		t.Helper()
		return as.Create(t.Context(), object(namespaces), client.DryRunAll)
	}
}

// asks are the rows of the table.
func asks(t *testing.T, admin client.Client) map[string]ask {
	t.Helper()
	given := newDefinition("v1.0.0")
	given.GenerateName, given.Name = "", "given"
	require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), given)))
	t.Cleanup(func() { _ = admin.Delete(afterwards(t), given) })
	other, classOfSnapshots := definition(t, admin, nil), class(t, admin, nil)
	for _, name := range []string{"charts", "berlin"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultSystemNamespace, Name: name}}
		require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), secret)))
	}
	system := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.DefaultSystemNamespace, Name: name}}
	}
	installed := func(namespace string) *v1alpha1.ApplicationInstallation {
		i := newInstallation(namespace, given.Name, "v1.0.0")
		i.Name = "installed"
		require.NoError(t, client.IgnoreAlreadyExists(admin.Create(t.Context(), i.DeepCopy())))
		return i
	}
	return map[string]ask{
		"read the catalog": func(t *testing.T, as client.Client, _ []string) error {
			return as.List(t.Context(), &v1alpha1.ApplicationDefinitionList{})
		},
		"read the applications of theirs": func(t *testing.T, as client.Client, ns []string) error {
			return as.List(t.Context(), &v1alpha1.ApplicationInstallationList{}, client.InNamespace(ns[0]))
		},
		"write an Application": creating(func(ns []string) client.Object { return newApplication(ns[0]) }),
		"install a definition that they were given": creating(func(ns []string) client.Object {
			return newInstallation(ns[0], given.Name, "v1.0.0")
		}),
		"install any definition": creating(func(ns []string) client.Object { return newInstallation(ns[0], other.Name, "v1.0.0") }),
		"uninstall": func(t *testing.T, as client.Client, ns []string) error {
			return as.Delete(t.Context(), installed(ns[0]), client.DryRunAll)
		},
		"install into another namespace of theirs": creating(func(ns []string) client.Object {
			i := newInstallation(ns[0], given.Name, "v1.0.0")
			i.Spec.Namespace = &v1alpha1.TargetNamespace{Name: ns[1]}
			return i
		}),
		"deliver from git as a ServiceAccount of theirs": creating(func(ns []string) client.Object { return newGitSync(ns[0]) }),
		"publish a definition": creating(func([]string) client.Object {
			d := newDefinition("v1.0.0")
			d.Spec.Versions[0].Template.Source.Helm.Credentials = &v1alpha1.SourceCredentials{SecretRef: v1alpha1.LocalReference{Name: "charts"}}
			return d
		}),
		"withdraw a definition": func(t *testing.T, as client.Client, _ []string) error {
			return as.Delete(t.Context(), other.DeepCopy(), client.DryRunAll)
		},
		"write what is marked as a hub's copy": creating(func([]string) client.Object {
			d := newDefinition("v1.0.0")
			d.Spec.Versions[0].Template = nil
			d.Annotations = map[string]string{v1alpha1.CopyOfAnnotation: "a-hub"}
			return d
		}),
		"change the credentials of a source": func(t *testing.T, as client.Client, _ []string) error {
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"stringData": {"password": "new"}}`))
			return as.Patch(t.Context(), system("charts"), patch, client.DryRunAll)
		},
		"read a kubeconfig of the system namespace": func(t *testing.T, as client.Client, _ []string) error {
			s := system("berlin")
			return as.Get(t.Context(), client.ObjectKeyFromObject(s), s)
		},
		"create a Secret in the system namespace": creating(func([]string) client.Object { return system("mine") }),
		"write a KubernetesCluster":               creating(func(ns []string) client.Object { return newCluster(ns[0], "berlin") }),
		"schedule to the clusters of theirs": creating(func(ns []string) client.Object {
			a := newKubernetesApplication(ns[0])
			for i := range a.Spec.ResourceTemplates {
				a.Spec.ResourceTemplates[i].Spec.Secrets = nil
			}
			return a
		}),
		"write the status of an installation": func(t *testing.T, as client.Client, ns []string) error {
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"status": {"givenUp": "x"}}`))
			return as.Status().Patch(t.Context(), installed(ns[0]), patch)
		},
		"take a snapshot": creating(func(ns []string) client.Object {
			return newSnapshot(ns[0], classOfSnapshots.Name)
		}),
		"run a hook": creating(func(ns []string) client.Object {
			return &v1alpha1.ExecutionHook{
				ObjectMeta: metav1.ObjectMeta{Namespace: ns[0], Name: "lock"},
				Spec:       v1alpha1.ExecutionHookSpec{ActionName: "lock", Pods: []v1alpha1.HookPod{{Name: "db-0"}}},
			}
		}),
		"write a class of snapshots": creating(func([]string) client.Object {
			return &v1alpha1.ApplicationSnapshotClass{ObjectMeta: metav1.ObjectMeta{GenerateName: "class-"}, Snapshotter: v1alpha1.DataHandler}
		}),
		"read the content of every snapshot": func(t *testing.T, as client.Client, _ []string) error {
			return as.List(t.Context(), &v1alpha1.ApplicationSnapshotContentList{})
		},
	}
}

// tableOf returns the columns and the rows of the table of the page.
func tableOf(t *testing.T) (columns []string, table [][]string) {
	t.Helper()
	page, err := os.ReadFile("../api/docs/access.md")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(page), "\n| may |")
	require.True(t, found)
	text, _, _ = strings.Cut("| may |"+text, "\n\n")
	for n, line := range strings.Split(text, "\n") {
		var cells []string
		for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		switch n {
		case 0:
			columns = cells[1:]
		case 1:
		default:
			table = append(table, cells)
		}
	}
	return columns, table
}

// K4, K70: every cell of the table in api/docs/access.md, with the chart's ClusterRoles and real requests.
func TestRoles_mayWhatTheTableSays(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	rolesOfTheChart.Do(func() { createRoles(t, admin) })
	rows := asks(t, admin)
	columns, table := tableOf(t)
	require.ElementsMatch(t, columns, slices.Collect(func(yield func(string) bool) {
		for name := range people {
			if !yield(name) {
				return
			}
		}
	}))
	require.Len(t, table, len(rows), "a row for each request")
	for n, column := range columns {
		as, namespaces := c.person(t, column)
		for _, row := range table {
			request, known := rows[row[0]]
			require.True(t, known, row[0])
			err := request(t, as, namespaces)
			switch row[n+1] {
			case "yes":
				assert.NoError(t, err, "%s: %s", column, row[0])
			case "no":
				assert.True(t, apierrors.IsForbidden(err), "%s: %s: %v", column, row[0], err)
			default:
				assert.Fail(t, "neither yes nor no", row[0])
			}
		}
	}
}

// K70: what people have of Kubernetes brings Waybill's roles along.
func TestRoles_areAddedToThoseOfKubernetes(t *testing.T) {
	chart, err := loader.LoadDir("../charts/waybill")
	require.NoError(t, err)
	rendered, err := helm.Render(t.Context(), chart, helm.Options{ReleaseName: "waybill", Namespace: v1alpha1.DefaultSystemNamespace,
		Values: map[string]any{"image": map[string]any{"repository": "example.com/waybill"}}})
	require.NoError(t, err)
	added := map[string]string{}
	for _, o := range rendered.Objects {
		role := &rbacv1.ClusterRole{}
		if o.GetKind() != "ClusterRole" || runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role) != nil {
			continue
		}
		for label := range role.Labels {
			if to, ok := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-"); ok {
				added[role.Name] = to
			}
		}
	}
	assert.Equal(t, map[string]string{"waybill-view": "view", "waybill-edit": "edit", "waybill-admin": "admin"}, added)
}
