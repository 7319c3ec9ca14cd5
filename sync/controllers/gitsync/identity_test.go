package gitsync_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// C37: what a tenant commits is applied with the tenant's rights, and with no others.
func TestGitSync_actsAsTheServiceAccount(t *testing.T) {
	w := newWorld(t)
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "configmaps"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}},
	}
	w.Create(role)
	w.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "tenant"}})
	w.Create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "tenant"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.Namespace, Name: "tenant"}},
	})
	w.commit(map[string]string{
		"allowed.yaml":   configMap("allowed", "x"),
		"forbidden.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: " + w.Namespace + "-escalate}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n",
	})
	gs := w.sync(func(s *v1alpha1.GitSyncSpec) { s.ServiceAccountName = "tenant" })
	message := hub.AwaitReason(w.World, gs, v1alpha1.ApplyFailedReason)
	assert.Contains(t, message, "system:serviceaccount:"+w.Namespace+":tenant", "the identity that lacks the right is named")

	cm := &corev1.ConfigMap{}
	require.True(t, w.Exists(cm, "allowed"))
	binding := &rbacv1.ClusterRoleBinding{}
	assert.False(t, w.ExistsIn("", binding, w.Namespace+"-escalate"))

	require.NoError(t, w.Client.Delete(t.Context(), cm))
	w.AwaitThere(cm, "allowed")
}
