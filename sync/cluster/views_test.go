package cluster_test

import (
	"runtime"
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

// C37
func TestCluster_As_actsWithTheRightsOfTheUser(t *testing.T) {
	r := newRegistry(t, fast())
	r.Ensure(one, "a", user(t).RESTConfig())
	c := engaged(t, r, one)

	nobody, err := c.As("nobody")
	require.NoError(t, err)
	err = nobody.Client().List(t.Context(), &corev1.SecretList{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.Contains(t, err.Error(), `User "nobody"`)
	err = nobody.Client().List(t.Context(), &v1alpha1.ApplicationDefinitionList{})
	assert.True(t, apierrors.IsForbidden(err), "nothing comes from a cache that was filled with other rights: %v", err)

	assert.Nil(t, nobody.Cache())
	assert.Equal(t, c.Name(), nobody.Name())
	assert.Equal(t, c.UID(), nobody.UID())
	assert.Equal(t, c.Context(), nobody.Context())
	assert.Same(t, c.Mapper(), nobody.Mapper())
	assert.Equal(t, c.Config().Transport, nobody.Config().Transport, "one set of connections")
}

// C37: clients are keyed by user.
func TestCluster_As_keepsAViewWhileItIsUsed(t *testing.T) {
	r := newRegistry(t, fast())
	r.Ensure(one, "a", user(t).RESTConfig())
	c := engaged(t, r, one)

	view, err := c.As("u")
	require.NoError(t, err)
	runtime.GC()
	again, err := c.As("u")
	require.NoError(t, err)
	assert.Same(t, view, again)
	other, err := c.As("v")
	require.NoError(t, err)
	assert.NotSame(t, view, other)
}

// C37: who may impersonate ServiceAccounts, and neither users nor groups, acts as one in full, with
// what its groups may.
func TestCluster_As_aServiceAccount(t *testing.T) {
	ns := user(t).Namespace(t)
	admin, err := client.New(user(t).RESTConfig(), client.Options{})
	require.NoError(t, err)
	name := "hub-of-" + ns
	config, err := user(t).AddUser(name)
	require.NoError(t, err)
	person := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
	grant(t, admin, "", person, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}})
	impersonating := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"impersonate"}}
	grant(t, admin, ns, person, impersonating)
	team := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + ns}
	reading := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}}
	grant(t, admin, ns, team, reading)
	user(t).AwaitGranted(t, name, ns, impersonating)
	user(t).AwaitGranted(t, "system:serviceaccount:"+ns+":deployer", ns, reading)

	r := newRegistry(t, fast())
	r.Ensure(one, "a", config)
	deployer, err := engaged(t, r, one).As("system:serviceaccount:" + ns + ":deployer")
	require.NoError(t, err)
	require.NoError(t, deployer.Client().List(t.Context(), &corev1.SecretList{}, client.InNamespace(ns)))
	masters, err := engaged(t, r, one).As("system:admin")
	require.NoError(t, err)
	err = masters.Client().List(t.Context(), &corev1.SecretList{}, client.InNamespace(ns))
	require.ErrorContains(t, err, "cannot impersonate resource \"users\"")
}

// grant gives a user a right: in a namespace, or everywhere where that is empty.
func grant(t *testing.T, admin client.Client, namespace string, to rbacv1.Subject, rule rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Rules: []rbacv1.PolicyRule{rule}}
	require.NoError(t, admin.Create(t.Context(), role))
	meta := metav1.ObjectMeta{GenerateName: "test-", Namespace: namespace}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
	if namespace == "" {
		require.NoError(t, admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: []rbacv1.Subject{to}}))
		return
	}
	require.NoError(t, admin.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: []rbacv1.Subject{to}}))
}

// The local cluster can be seen by others too.
func TestCluster_As_ofTheLocalCluster(t *testing.T) {
	local := newLocal(t)
	nobody, err := local.As("nobody")
	require.NoError(t, err)
	err = nobody.Client().Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}
