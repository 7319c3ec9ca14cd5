package release_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/sync/cluster/watch"
)

// limited makes the engine a user who has these rights in the namespace of the test, and no others.
func (w *world) limited(rules ...rbacv1.PolicyRule) {
	w.Helper()
	user := "limited-in-" + w.namespace
	config, err := w.cluster.AddUser(user)
	require.NoError(w, err)
	config.QPS = -1
	w.user, w.target = user, newTarget(w.T, config)
	meta := metav1.ObjectMeta{Name: "limited"}
	_, err = w.client.RbacV1().Roles(w.namespace).Create(w.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	require.NoError(w, err)
	_, err = w.client.RbacV1().RoleBindings(w.namespace).Create(w.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	require.NoError(w, err)
	w.cluster.AwaitGranted(w, user, w.namespace, rules...)
}

// role is a manifest of a Role that lets Pods be treated so.
func role(name, verb string) string {
	return fmt.Sprintf("---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: %s}\nrules: [{apiGroups: [\"\"], resources: [pods], verbs: [%s]}]\n", name, verb)
}

// Whom `escalate` is granted on some names may grant with roles of these names what they do not have themselves, and
// with no others.
func TestEnsure_escalatesWhereItMay(t *testing.T) {
	w := newWorld(t)
	roles := rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"create"}}
	named := rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"get", "patch", "delete", "escalate"}, ResourceNames: []string{"ours"}}
	w.limited(roles, named, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "create", "update", "delete"}})
	w.ensure(w.template(role("ours", "get")))
	verbs := func() []string {
		r, err := w.client.RbacV1().Roles(w.namespace).Get(t.Context(), "ours", metav1.GetOptions{})
		require.NoError(t, err)
		return r.Rules[0].Verbs
	}
	assert.Equal(t, []string{"get"}, verbs())

	require.NoError(t, w.client.RbacV1().Roles(w.namespace).Delete(t.Context(), "ours", metav1.DeleteOptions{}))
	_, err := w.engine.Correct(t.Context(), w.target, w.identity("one"), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"get"}, verbs(), "it is put back")
	w.ensure(w.template(role("ours", "delete")))
	assert.Equal(t, []string{"delete"}, verbs())

	_, err = w.try(t.Context(), w.template(role("ours", "delete")+role("theirs", "get")))
	require.Error(t, err)
	assert.True(t, watch.LacksRight(err.Error()), "%v", err)
}
