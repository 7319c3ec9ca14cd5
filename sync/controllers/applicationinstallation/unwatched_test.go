package applicationinstallation_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// K3, C53: Ready says what the kubeconfig may not watch, because no watch sees there what others
// change; once the right is granted, that is corrected.
func TestInstallation_tellsWhatItMayNotWatch(t *testing.T) {
	t.Parallel()
	w, _ := newRestricted(t)
	w.grant(restricted, "some", mayDo("get", "create", "update", "patch", "delete"))
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	assert.Contains(t, conditions.GetMessage(inst, v1alpha1.ReadyCondition), denied)
	plain := &world{World: hub.NewWorld(t, w.Cluster), repo: w.repo}
	plain.kustomizations(map[string]string{"1.0.0/settings.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}"})
	unchanged := hub.AwaitReady(plain.World, plain.install(nil))
	assert.Contains(t, conditions.GetMessage(unchanged, v1alpha1.ReadyCondition), denied)

	wanted := w.page("web")
	w.editPage()
	w.grant(restricted, "rest", mayDo("list", "watch"))
	require.True(t, w.Eventually(func() bool { return w.page("web") == wanted }), "what no watch saw is corrected")
	silent := func(i *v1alpha1.ApplicationInstallation) bool {
		return conditions.IsReady(i) && !strings.Contains(conditions.GetMessage(i, v1alpha1.ReadyCondition), denied)
	}
	hub.Await(w.World, inst, "Ready says nothing of it any more", silent)
	hub.Await(plain.World, unchanged, "nor where nothing was changed", silent)
}

// K3, C53: the right to watch all namespaces is taken away, and then that to watch the one. What Helm
// wrote is watched with what is left, and at last Ready says what is not watched.
func TestInstallation_losesTheRightToWatch(t *testing.T) {
	t.Parallel()
	w, gate := newRestricted(t)
	reads, writes := mayDo("list", "watch"), mayDo("get", "create", "update", "patch", "delete")
	w.grant(restricted, "writes", writes)
	w.grant(restricted, "everywhere", reads)
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "here"}, Rules: []rbacv1.PolicyRule{reads}}
	w.Create(role)
	w.Create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "here"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: restricted}},
	})
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	wanted := w.page("web")

	w.revoke(gate, &rbacv1.ClusterRoleBinding{ObjectMeta: objectMeta("everywhere")}, "", reads)
	w.editPage()
	require.True(t, w.Eventually(func() bool { return w.page("web") == wanted }), "what is edited is corrected")
	hub.AwaitReady(w.World, inst)
	assert.NotContains(t, conditions.GetMessage(inst, v1alpha1.ReadyCondition), denied)

	w.revoke(gate, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "here"}}, w.Namespace, reads)
	hub.Await(w.World, inst, "Ready says what is not watched", func(i *v1alpha1.ApplicationInstallation) bool {
		return conditions.IsReady(i) && strings.Contains(conditions.GetMessage(i, v1alpha1.ReadyCondition), denied)
	})
}

const (
	// restricted is a user who may do what a chart needs, but nothing with ConfigMaps.
	restricted = "restricted"
	// denied is what the API server says if they may not watch ConfigMaps.
	denied = `cannot list resource "configmaps"`
)

// newRestricted is a world in a cluster of its own, which is driven with the rights of restricted
// through a gate.
func newRestricted(t *testing.T) (*world, *env.Gate) {
	t.Helper()
	c := ownCluster(t, "restricted")
	w := &world{World: hub.NewWorld(t, c), repo: newChartRepo(t)}
	gate, err := env.NewGate(c.Address())
	require.NoError(t, err)
	t.Cleanup(gate.Close)
	config, err := c.AddUser(restricted)
	require.NoError(t, err)
	all := []string{"*"}
	w.grant(restricted, "most", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "services", "namespaces", "events", "pods"}, Verbs: all},
		rbacv1.PolicyRule{APIGroups: []string{"apps", "batch", "events.k8s.io", v1alpha1.Group}, Resources: all, Verbs: all})
	hub.Start(t, c, drive).Clusters.Ensure(types.NamespacedName{Namespace: hub.SystemNamespace, Name: restricted}, "a", env.Via(gate, config))
	return w, gate
}

// mayDo is a right to ConfigMaps.
func mayDo(verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}
}

// editPage edits the ConfigMap of the chart.
func (w *world) editPage() {
	w.T.Helper()
	edited := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "web"}}
	hub.Change(w.World, edited, func(cm *corev1.ConfigMap) {
		for key := range cm.Data {
			cm.Data[key] = "edited"
		}
	})
}

// revoke takes a right away that a binding gives to restricted, and cuts the watches that rely on it.
func (w *world) revoke(gate *env.Gate, binding client.Object, namespace string, rule rbacv1.PolicyRule) {
	w.T.Helper()
	gate.Shut()
	require.NoError(w.T, w.Client.Delete(w.T.Context(), binding))
	w.Cluster.AwaitRevoked(w.T, restricted, namespace, rule)
	require.NoError(w.T, gate.Open())
}

// grant gives a user rights in all namespaces.
func (w *world) grant(user, role string, rules ...rbacv1.PolicyRule) {
	w.T.Helper()
	w.Create(&rbacv1.ClusterRole{ObjectMeta: objectMeta(role), Rules: rules})
	w.Create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: objectMeta(role),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
	w.Cluster.AwaitGranted(w.T, user, "", rules...)
}
