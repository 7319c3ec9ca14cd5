package gitsync_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/test/hub"
)

// P9, C34: what cannot be deleted is reported apart from what cannot be applied, and is deleted once
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
	w.awaitEvent(v1alpha1.PrunedReason, "deleted, because not in "+gs.Status.Revision+": ConfigMap "+w.Namespace+"/stale")
}

// C28, P14: a deletion that a webhook refuses as a conflict is reported in its words, the same each time.
func TestGitSync_saysWhyADeletionIsRefused(t *testing.T) {
	w := newWorld(t)
	used := "Operation cannot be fulfilled: it is used by team-a/web; delete that"
	w.webhook("", "v1", "configmaps", func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		refused := r.Operation == admissionv1.Delete && r.Name == "used"
		return &admissionv1.AdmissionResponse{Allowed: !refused, Result: &metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: used}}
	})
	w.commit(map[string]string{"used.yaml": configMap("used", "x"), "kept.yaml": configMap("kept", "x")})
	gs := hub.AwaitReady(w.World, w.sync(nil))
	probe := &corev1.ConfigMap{}
	require.True(t, w.Exists(probe, "used"))
	require.True(t, w.Eventually(func() bool { return w.Client.Delete(t.Context(), probe, client.DryRunAll) != nil }), "the webhook is not in force")

	w.remove("used.yaml")
	hub.Reconcile(w.World, gs)
	message := hub.AwaitReason(w.World, gs, v1alpha1.PruneFailedReason)
	assert.Equal(t, "1 object cannot be deleted: ConfigMap "+w.Namespace+`/used: admission webhook "configmaps.example.com" denied the request: `+used, message)
	require.Len(t, gs.Status.Problems, 1)
	assert.Equal(t, apply.ReasonRefused, gs.Status.Problems[0].Reason)
}

// P9, P12: one bad manifest holds back only what it may be about.
func TestGitSync_oneBadManifestHoldsUpNoRemoval(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{"a.yaml": configMap("a", "x"), "b.yaml": configMap("b", "x"), "c.yaml": configMap("c", "x")})
	gs := hub.AwaitReady(w.World, w.sync(nil))
	w.remove("b.yaml")
	w.commit(map[string]string{"a.yaml": configMap("a", "x") + "  key: y\n"})
	hub.Reconcile(w.World, gs)
	w.AwaitGone(&corev1.ConfigMap{}, "b")
	message := hub.AwaitReason(w.World, gs, v1alpha1.InvalidManifestReason)
	assert.Contains(t, message, "1 manifest cannot be used: a.yaml:")
	assert.NotContains(t, message, "not deleted")
	assert.True(t, w.Exists(&corev1.ConfigMap{}, "a"), "it is wanted")

	w.remove("c.yaml")
	w.commit(map[string]string{"a.yaml": "a: ["})
	hub.Reconcile(w.World, gs)
	hub.Await(w.World, gs, "it says what is held", func(gs *v1alpha1.GitSync) bool {
		return strings.HasSuffix(conditions.GetMessage(gs, v1alpha1.ReadyCondition),
			"; a.yaml:1: nothing is deleted until it is corrected: 2 objects stay that are in no other manifest")
	})
	assert.True(t, w.Exists(&corev1.ConfigMap{}, "c"), "the file may describe it")
}

// C41: without the inventory it is not known what to delete.
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
