package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The ClusterRole that the hub has is replaced when --role names another one, and is kept otherwise. The token
// stays the same, and has its rights all the time.
func TestCluster_replacesTheRole(t *testing.T) {
	startDriver(t)
	there := clientOf(t, user(t))
	added := func(flags ...string) result {
		t.Helper()
		got := cluster(t, append([]string{"add", "berlin", "--kubeconfig", user(t).KubeconfigFile(), "--label", broughtIn + "=true"}, flags...)...)
		require.Zero(t, got.code, "%s%s", got.out, got.errOut)
		return got
	}
	mayWrite := func() error {
		another := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "another"}}
		return withToken(t, kept(t, "berlin").Data["value"]).Create(t.Context(), another, client.DryRunAll)
	}
	added()
	require.True(t, apierrors.IsForbidden(mayWrite()), "the least lets it create no ServiceAccount")
	first := kept(t, "berlin").Data["value"]

	tried := added("--role", "cluster-admin", "--dry-run")
	assert.Contains(t, tried.out, "berlin: ClusterRoleBinding/waybill-hub-access would be replaced: it binds ClusterRole waybill-hub-access\n")
	got := added("--role", "cluster-admin")
	assert.Contains(t, got.out, "berlin: ClusterRoleBinding/waybill-hub-access replaced: it bound ClusterRole waybill-hub-access\n")
	assert.Contains(t, got.out, "may do everything there (ClusterRole cluster-admin)")
	require.Eventually(t, func() bool { return mayWrite() == nil }, limit, often)
	assert.Equal(t, first, kept(t, "berlin").Data["value"])

	assert.Contains(t, added().out, "berlin: ClusterRoleBinding/waybill-hub-access is there\n", "what was given once is not taken away unasked")
	require.NoError(t, mayWrite())

	// What a run that was killed half way has left.
	binding := named(&rbacv1.ClusterRoleBinding{}, "", "waybill-hub-access")
	require.NoError(t, there.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
	interim := named(&rbacv1.ClusterRoleBinding{RoleRef: binding.RoleRef, Subjects: binding.Subjects}, "", "waybill-hub-access-interim")
	create(t, there, interim)
	require.NoError(t, there.Delete(t.Context(), binding))
	assert.Contains(t, added().out, "may do everything there")
	absent(t, there, interim)
	require.NoError(t, mayWrite())

	added("--role", "waybill-hub-access")
	require.Eventually(t, func() bool { return apierrors.IsForbidden(mayWrite()) }, limit, often, "the least again")
	got = cluster(t, "remove", "berlin", "--kubeconfig", user(t).KubeconfigFile(), "--yes")
	require.Zero(t, got.code, "%s%s", got.out, got.errOut)
	absent(t, there, accountOfTheHub()...)
}
