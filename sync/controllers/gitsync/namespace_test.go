package gitsync_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// onConfigMaps is a right to deal with ConfigMaps.
func onConfigMaps(verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}
}

// allowConfigMaps lets the ServiceAccount `tenant` of the test's namespace deal with the
// ConfigMaps of a namespace, by a binding there, and returns when that is in force.
func (w *world) allowConfigMaps(namespace string, verbs ...string) *rbacv1.RoleBinding {
	w.T.Helper()
	rule := onConfigMaps(verbs...)
	role := &rbacv1.Role{ObjectMeta: named("tenant"), Rules: []rbacv1.PolicyRule{rule}}
	role.Namespace = namespace
	binding := &rbacv1.RoleBinding{
		ObjectMeta: named("tenant"),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.Namespace, Name: "tenant"}},
	}
	binding.Namespace = namespace
	w.Create(role)
	w.Create(binding)
	w.Cluster.AwaitGranted(w.T, w.User("tenant"), namespace, rule)
	return binding
}

// C37, C34: the rights that a GitSync acts with go with its namespace. It does not hold up the
// namespace for that, it takes out what it put elsewhere, and it uses no other rights for it.
func TestGitSync_goesWithItsNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	elsewhere := w.Cluster.Namespace(t)
	own := w.allowConfigMaps(w.Namespace, "*")
	w.allowConfigMaps(elsewhere, "*")
	w.commit(map[string]string{
		"own.yaml":       configMap("own", "x"),
		"elsewhere.yaml": strings.Replace(configMap("far", "x"), "name: far", "name: far\n  namespace: "+elsewhere, 1),
	})
	gs := hub.AwaitReady(w.World, w.sync(func(s *v1alpha1.GitSyncSpec) { s.ServiceAccountName = "tenant" }))
	require.True(t, w.ExistsIn(elsewhere, &corev1.ConfigMap{}, "far"))

	require.NoError(t, w.Client.Delete(t.Context(), own))
	w.Cluster.AwaitRevoked(t, w.User("tenant"), w.Namespace, onConfigMaps("*"))
	require.NoError(t, w.Client.Delete(t.Context(), gs))
	assert.Contains(t, hub.AwaitReason(w.World, gs, v1alpha1.DeleteFailedReason), w.User("tenant"),
		"without the namespace going, a right that is missing is for people to give back")
	assert.False(t, w.ExistsIn(elsewhere, &corev1.ConfigMap{}, "far"))

	namespace := &corev1.Namespace{ObjectMeta: named(w.Namespace)}
	require.NoError(t, w.Client.Delete(t.Context(), namespace))
	require.True(t, w.Eventually(func() bool { return !w.ExistsIn("", namespace, w.Namespace) }), "the namespace is held up")
}

// A Namespace that was removed from git and does not go says why, some time after its deletion: Ready passes that on.
func TestGitSync_saysWhyANamespaceDoesNotGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	going := &corev1.Namespace{ObjectMeta: named(w.Namespace + "-going")}
	w.commit(map[string]string{
		"own.yaml":   configMap("own", "x"),
		"going.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: " + going.Name + "\n",
	})
	gs := hub.AwaitReady(w.World, w.sync(nil))
	guarded := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: going.Name, Name: "guarded", Finalizers: []string{"example.com/guard"}}}
	require.NoError(t, w.Client.Create(t.Context(), guarded))

	w.remove("going.yaml")
	hub.Reconcile(w.World, gs)
	require.True(t, w.Eventually(func() bool {
		return w.ExistsIn("", going, going.Name) && slices.ContainsFunc(going.Status.Conditions, func(c corev1.NamespaceCondition) bool {
			return strings.Contains(c.Message, "example.com/guard")
		})
	}), "%+v", going.Status)
	hub.Reconcile(w.World, gs)
	hub.Await(w.World, gs, "it does not say why", func(gs *v1alpha1.GitSync) bool {
		return strings.Contains(conditions.GetMessage(gs, v1alpha1.ReadyCondition), "example.com/guard")
	})

	hub.Change(w.World, guarded, func(c *corev1.ConfigMap) { c.Finalizers = nil })
	hub.AwaitReady(w.World, gs)
}
