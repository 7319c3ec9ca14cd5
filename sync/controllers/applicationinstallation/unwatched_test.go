package applicationinstallation_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// K3, C53: Ready says what the kubeconfig may not watch, because nobody sees there what others
// change; once the right is granted, that is put right.
func TestInstallation_tellsWhatItMayNotWatch(t *testing.T) {
	c := env.Start(t, env.Options{Name: "restricted", Pods: true, CRDs: []string{crds}})
	w := &world{World: hub.NewWorld(t, c), repo: newChartRepo(t)}
	const user = "restricted"
	config, err := c.AddUser(user)
	require.NoError(t, err)
	all := []string{"*"}
	w.grant(user, "most", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets", "services", "namespaces", "events", "pods"}, Verbs: all},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "update", "patch", "delete"}},
		rbacv1.PolicyRule{APIGroups: []string{"apps", "batch", "events.k8s.io", v1alpha1.Group}, Resources: all, Verbs: all})
	hub.Start(t, c, drive).Clusters.Ensure(types.NamespacedName{Namespace: hub.SystemNamespace, Name: user}, "a", config)
	w.define(nil)
	inst := hub.AwaitReady(w.World, w.install(nil))
	const denied = `cannot list resource "configmaps"`
	assert.Contains(t, conditions.GetMessage(inst, v1alpha1.ReadyCondition), denied)
	plain := &world{World: hub.NewWorld(t, c), repo: w.repo}
	plain.kustomizations(map[string]string{"1.0.0/settings.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}"})
	unchanged := hub.AwaitReady(plain.World, plain.install(nil))
	assert.Contains(t, conditions.GetMessage(unchanged, v1alpha1.ReadyCondition), denied)

	wanted, edited := w.page("web"), &corev1.ConfigMap{ObjectMeta: objectMeta("web")}
	edited.Namespace = w.Namespace
	hub.Change(w.World, edited, func(cm *corev1.ConfigMap) {
		for key := range cm.Data {
			cm.Data[key] = "edited"
		}
	})
	w.grant(user, "rest", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}})
	require.True(t, w.Eventually(func() bool { return w.page("web") == wanted }), "what nobody saw is put right")
	silent := func(i *v1alpha1.ApplicationInstallation) bool {
		return conditions.IsReady(i) && !strings.Contains(conditions.GetMessage(i, v1alpha1.ReadyCondition), denied)
	}
	hub.Await(w.World, inst, "Ready says nothing of it any more", silent)
	hub.Await(plain.World, unchanged, "nor where nobody has changed anything", silent)
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
