package gitsync_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// P9, C34: what cannot be deleted is told apart from what cannot be applied, and is deleted once
// it can be.
func TestGitSync_tellsWhatItCannotDelete(t *testing.T) {
	w := newWorld(t)
	role := &rbacv1.Role{
		ObjectMeta: named("tenant"),
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch"},
		}},
	}
	w.Create(role)
	w.Create(&corev1.ServiceAccount{ObjectMeta: named("tenant")})
	w.Create(&rbacv1.RoleBinding{
		ObjectMeta: named("tenant"),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: w.Namespace, Name: "tenant"}},
	})
	w.commit(map[string]string{"kept.yaml": configMap("kept", "one"), "stale.yaml": configMap("stale", "x")})
	gs := hub.AwaitReady(w.World, w.sync(func(s *v1alpha1.GitSyncSpec) { s.ServiceAccountName = "tenant" }))

	w.remove("stale.yaml")
	w.commit(map[string]string{"kept.yaml": configMap("kept", "two")})
	hub.Reconcile(w.World, gs)
	message := hub.AwaitReason(w.World, gs, v1alpha1.PruneFailedReason)
	assert.Contains(t, message, "ConfigMap "+w.Namespace+"/stale")
	assert.Contains(t, message, `cannot delete resource "configmaps"`)
	require.Len(t, gs.Status.Problems, 1)
	assert.Equal(t, "stale", gs.Status.Problems[0].Name)
	cm := &corev1.ConfigMap{}
	require.True(t, w.Exists(cm, "kept"))
	assert.Equal(t, "two", cm.Data["key"], "what is wanted is applied")

	role.Rules[0].Verbs = append(role.Rules[0].Verbs, "delete")
	require.NoError(t, w.Client.Update(t.Context(), role))
	w.AwaitGone(&corev1.ConfigMap{}, "stale")
	hub.AwaitReady(w.World, gs)
}

// C41: without the inventory nobody knows what to delete.
func TestGitSync_doesNothingWithoutItsInventory(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{"a.yaml": configMap("a", "x")})
	gs := w.sync(func(s *v1alpha1.GitSyncSpec) { s.Suspend = true })
	hub.Await(w.World, gs, "it is suspended", func(gs *v1alpha1.GitSync) bool { return w.reasonNow(gs) == v1alpha1.SuspendedReason })
	gs.Status.Inventory = &v1alpha1.Inventory{Secrets: []string{"lost"}, Count: 1}
	require.NoError(t, w.Client.Status().Update(t.Context(), gs))
	hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) { gs.Spec.Suspend = false })
	assert.Contains(t, hub.AwaitReason(w.World, gs, v1alpha1.InventoryUnreadableReason), `"lost"`)
	assert.False(t, w.Exists(&corev1.ConfigMap{}, "a"))

	hub.Change(w.World, gs, func(gs *v1alpha1.GitSync) { gs.Finalizers = nil })
}
