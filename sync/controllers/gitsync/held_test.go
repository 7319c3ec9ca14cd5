package gitsync_test

import (
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// C65: git does not undo a rollback, until it says something else or the hold is released.
func TestGitSync_leavesWhatARollbackHolds(t *testing.T) {
	w := newWorld(t)
	w.commit(map[string]string{"web.yaml": configMap("web", "new"), "side.yaml": configMap("side", "one")})
	gs := hub.AwaitReady(w.World, w.sync(nil))
	web, side := &corev1.ConfigMap{}, &corev1.ConfigMap{}
	require.True(t, w.Exists(web, "web"))
	require.True(t, w.Exists(side, "side"))
	w.Rollback("back", v1alpha1.RollbackCompleted, v1alpha1.HeldObject{ObjectReference: v1alpha1.ObjectReference{Kind: "ConfigMap", Name: "web"}})
	hub.Change(w.World, web, func(cm *corev1.ConfigMap) {
		hub.MarkHeld(cm, "back")
		cm.Data["key"] = "old"
	})
	gs = hub.Await(w.World, gs, "it is told", func(gs *v1alpha1.GitSync) bool { return conditions.IsTrue(gs, v1alpha1.HeldCondition) })
	assert.Equal(t, "ApplicationRollback "+w.Namespace+"/back holds ConfigMap "+w.Namespace+"/web: left as the rollback has put them until something else is wanted, "+
		"or until the rollback is undone, deleted or has spec.hold: false", conditions.GetMessage(gs, v1alpha1.HeldCondition))
	assert.True(t, conditions.IsReady(gs), "what is not wanted is wanted so")
	require.Len(t, gs.Status.Held, 1)

	hub.Change(w.World, side, func(cm *corev1.ConfigMap) { cm.Data["key"] = "edited" })
	require.True(t, w.Eventually(func() bool { return w.Exists(side, "side") && side.Data["key"] == "one" }), "others are corrected")
	require.True(t, w.Exists(web, "web"))
	assert.Equal(t, "old", web.Data["key"])

	w.commit(map[string]string{"side.yaml": configMap("side", "two")})
	gs = hub.Reconcile(w.World, gs)
	require.True(t, w.Exists(web, "web"))
	assert.Equal(t, "old", web.Data["key"], "that commit is about another object")

	w.commit(map[string]string{"web.yaml": configMap("web", "newer")})
	gs = hub.Reconcile(w.World, gs)
	require.True(t, w.Exists(web, "web"))
	assert.Equal(t, "newer", web.Data["key"], "a newer commit takes it up again")
	gs = hub.Await(w.World, gs, "it is not held any more", func(gs *v1alpha1.GitSync) bool { return !conditions.Has(gs, v1alpha1.HeldCondition) })
	require.Len(t, gs.Status.Held, 1, "it is remembered that the mark does not count any more")

	hub.Change(w.World, web, func(cm *corev1.ConfigMap) { hub.MarkHeld(cm, "") })
	hub.Await(w.World, gs, "nothing is left of it", func(gs *v1alpha1.GitSync) bool { return len(gs.Status.Held) == 0 })
}
