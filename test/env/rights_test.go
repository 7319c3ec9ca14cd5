package env_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// What was waited for holds at once, each time.
func TestCluster_awaitsRights(t *testing.T) {
	c := plain(t)
	ns, admin := c.Namespace(t), clientOf(t, c)
	config, err := c.AddUser(ns)
	require.NoError(t, err)
	user, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "delete"}}
	roles, bindings := admin.RbacV1().Roles(ns), admin.RbacV1().RoleBindings(ns)
	_, err = roles.Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{})
	require.NoError(t, err)
	for range 10 {
		_, err = bindings.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "r"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: ns}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		c.AwaitGranted(t, ns, ns, rule)
		_, err = user.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)

		require.NoError(t, bindings.Delete(t.Context(), "r", metav1.DeleteOptions{}))
		c.AwaitRevoked(t, ns, ns, rule)
		_, err = user.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsForbidden(err), "%v", err)
	}
}

func TestCluster_namespaceHasItsServiceAccount(t *testing.T) {
	c := plain(t)
	_, err := clientOf(t, c).CoreV1().ServiceAccounts(c.Namespace(t)).Get(t.Context(), "default", metav1.GetOptions{})
	assert.NoError(t, err)
}
