package integration_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/program"
)

// tenant is a user with ClusterRole edit in one namespace, in a cluster where admission and the
// agent run with the rights that the chart gives them.
type tenant struct {
	*marked
	client.Client
	kubeconfig, bin string
}

func newTenant(t *testing.T) *tenant {
	t.Helper()
	m := newMarked(t)
	m.grantAsTheChartDoes()
	bin, err := program.Build(t.Context(), program.Sync, program.CLI)
	require.NoError(t, err)
	agent, err := program.Start(t.Context(), program.Options{
		Name: program.Sync, Bin: bin, Args: []string{"--controllers=agent", "--cache-dir=" + t.TempDir()},
		Kubeconfig: m.kubeconfigOf("system:serviceaccount:" + v1alpha1.DefaultSystemNamespace + ":waybill-sync"),
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		if log, err := agent.Log(); t.Failed() && err == nil {
			t.Log(program.Tail(log, 20))
		}
		require.NoError(t, agent.Kill())
	})

	user := m.namespace + "-tenant"
	require.NoError(t, m.admin.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: "tenant"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}))
	m.cluster.AwaitGranted(t, user, m.namespace, rbacv1.PolicyRule{ // roles are aggregated by a controller
		APIGroups: []string{v1alpha1.Group}, Resources: []string{"applications"}, Verbs: []string{"create"},
	})
	config, err := m.cluster.AddUser(user)
	require.NoError(t, err)
	c, err := client.New(config, client.Options{Scheme: m.admin.Scheme()})
	require.NoError(t, err)
	return &tenant{marked: m, Client: c, kubeconfig: m.write(user, config), bin: bin}
}

// grantAsTheChartDoes applies the accounts, roles and bindings of the chart, as in a user cluster.
func (m *marked) grantAsTheChartDoes() {
	m.Helper()
	objects, err := renderWaybill(m.T, map[string]any{"roles": map[string]any{"hub": false, "driver": false}})
	require.NoError(m, err)
	manifests := []string{"apiVersion: v1\nkind: Namespace\nmetadata: {name: " + v1alpha1.DefaultSystemNamespace + "}\n"}
	for _, o := range objects {
		if slices.Contains([]string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}, o.GetKind()) {
			content, err := o.MarshalJSON()
			require.NoError(m, err)
			manifests = append(manifests, string(content))
		}
	}
	_, err = m.cluster.Kubectl(m.Context(), strings.Join(manifests, "\n---\n"), "apply", "--server-side", "-f", "-")
	require.NoError(m, err)
}

// kubeconfigOf writes the kubeconfig of a user with the rights that RBAC grants to its name.
func (m *marked) kubeconfigOf(user string) string {
	m.Helper()
	config, err := m.cluster.AddUser(user)
	require.NoError(m, err)
	return m.write(user, config)
}

func (m *marked) write(user string, config *rest.Config) string {
	m.Helper()
	content, err := env.Kubeconfig(user, config)
	require.NoError(m, err)
	path := filepath.Join(m.TempDir(), "kubeconfig")
	require.NoError(m, os.WriteFile(path, content, 0o600))
	return path
}

// waybill runs the command line program as the tenant.
func (u *tenant) waybill(args ...string) (string, error) {
	command := exec.CommandContext(u.Context(), filepath.Join(u.bin, program.CLI), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+u.kubeconfig)
	output, err := command.CombinedOutput()
	return string(output), err
}

func (u *tenant) part(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: name, Labels: map[string]string{"app": "shop"}}}
}

func (u *tenant) shop(namespace string) *v1alpha1.Application {
	return &v1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"},
		Spec: v1alpha1.ApplicationSpec{
			Type: "web", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}},
			Components: []v1alpha1.ApplicationComponent{{Kind: "ConfigMap"}},
		},
	}
}

// A40, A41, A42: with the usual rights in one namespace, and none outside of it, people define an
// Application over what is there, have later objects marked, see what belongs together, and delete
// it all.
func TestTenant_worksInOneNamespaceAlone(t *testing.T) {
	u := newTenant(t)
	ctx := t.Context()
	early := u.part("early")
	require.NoError(t, u.Create(ctx, early))
	app := u.shop(u.namespace)
	require.NoError(t, u.Create(ctx, app))
	require.Eventually(t, func() bool {
		require.NoError(t, u.Get(ctx, client.ObjectKeyFromObject(early), early))
		owned := slices.ContainsFunc(early.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == app.UID })
		return owned && early.Annotations[v1alpha1.ApplicationAnnotation] == app.Name
	}, limit, often, "what was there before is marked and owned")

	require.Eventually(t, func() bool {
		probe := u.part("probe")
		require.NoError(t, u.Create(ctx, probe, client.DryRunAll))
		return probe.Annotations[v1alpha1.ApplicationAnnotation] == app.Name
	}, limit, often, "admission marks")
	require.NoError(t, u.Create(ctx, u.part("late")))
	require.Eventually(t, func() bool {
		require.NoError(t, u.Get(ctx, client.ObjectKeyFromObject(app), app))
		return app.Status.ComponentsReady == "2/2" && meta.IsStatusConditionTrue(app.Status.Conditions, v1alpha1.ReadyCondition)
	}, limit, often, "%+v", app.Status)

	output, err := u.waybill("tree", "application/shop", "-n", u.namespace)
	require.NoError(t, err, output)
	for _, part := range []string{"Application/shop", "ConfigMap/early", "ConfigMap/late"} {
		assert.Contains(t, output, part)
	}

	require.NoError(t, u.Delete(ctx, app))
	require.Eventually(t, func() bool {
		parts := &corev1.ConfigMapList{}
		require.NoError(t, u.List(ctx, parts, client.InNamespace(u.namespace), client.MatchingLabels{"app": "shop"}))
		return len(parts.Items) == 0 && apierrors.IsNotFound(u.Get(ctx, client.ObjectKeyFromObject(app), app))
	}, limit, often, "what it owns goes with it")

	elsewhere := u.cluster.Namespace(t)
	assert.True(t, apierrors.IsForbidden(u.Create(ctx, u.shop(elsewhere))))
	output, err = u.waybill("adopt", "shop", "-n", elsewhere, "--selector=app=shop", "--kind=ConfigMap", "--yes")
	require.Error(t, err, output)
	assert.Contains(t, output, "may not")
}
