package kubernetesapplicationresource_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// restrict has the cluster be reached by a user who may do no more than is granted to it. It
// returns the name of the user.
func (w *world) restrict(u *user) string {
	w.T.Helper()
	name := u.Namespace + "-restricted"
	config, err := u.Cluster.AddUser(name)
	require.NoError(w.T, err)
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{"kube-system"}, Verbs: []string{"get"}}},
	}
	u.Create(role)
	u.Create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})
	w.process.Clusters.Ensure(u.key, name, env.Via(u.gate, config))
	return name
}

// grant grants verbs on ConfigMaps to a user.
func (u *user) grant(name, role string, verbs ...string) {
	u.T.Helper()
	u.Create(&rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs}},
	})
	u.Create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})
}

// C11: what may not be deleted is said, and tried again: no event reports that it may be by now.
func TestRights_deletionGrantedLater(t *testing.T) {
	w := newWorld(t)
	name := w.restrict(w.berlin)
	w.berlin.grant(name, "write", "get", "list", "watch", "create", "patch")
	kar := hub.AwaitReady(w.World, w.submit(w.resource("web", w.berlin.configMap("web", "x"))))
	require.NoError(t, w.Client.Delete(t.Context(), kar))
	message := hub.AwaitReason(w.World, kar, v1alpha1.DeleteFailedReason)
	assert.Contains(t, message, `User "`+name+`" cannot delete resource "configmaps"`)
	assert.Contains(t, message, "or remove finalizer "+v1alpha1.Finalizer, "where no user can grant it")

	w.berlin.grant(name, "delete", "delete")
	w.AwaitGone(kar, "web")
	assert.False(t, w.berlin.Exists(&corev1.ConfigMap{}, "web"))
}
