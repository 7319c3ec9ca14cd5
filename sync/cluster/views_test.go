package cluster_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
)

// C37
func TestCluster_As_actsWithTheRightsOfTheUser(t *testing.T) {
	r := newRegistry(t, fast())
	r.Ensure(one, "a", user(t).RESTConfig())
	c := engaged(t, r, one)

	nobody, err := c.As("nobody", "system:authenticated")
	require.NoError(t, err)
	err = nobody.Client().List(t.Context(), &corev1.SecretList{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	assert.Contains(t, err.Error(), `User "nobody"`)
	err = nobody.Client().List(t.Context(), &v1alpha1.ApplicationDefinitionList{})
	assert.True(t, apierrors.IsForbidden(err), "nothing comes from a cache that was filled with other rights: %v", err)

	masters, err := c.As("somebody", "system:masters")
	require.NoError(t, err)
	require.NoError(t, masters.Client().List(t.Context(), &corev1.SecretList{}))

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

	view, err := c.As("u", "g")
	require.NoError(t, err)
	runtime.GC()
	again, err := c.As("u", "g")
	require.NoError(t, err)
	assert.Same(t, view, again)
	for _, groups := range [][]string{nil, {"h"}, {"g", "h"}} {
		other, err := c.As("u", groups...)
		require.NoError(t, err)
		assert.NotSame(t, view, other)
		assert.Equal(t, groups, other.Config().Impersonate.Groups)
	}
}

// The local cluster can be seen by others too.
func TestCluster_As_ofTheLocalCluster(t *testing.T) {
	local := newLocal(t)
	nobody, err := local.As("nobody")
	require.NoError(t, err)
	err = nobody.Client().Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
}
