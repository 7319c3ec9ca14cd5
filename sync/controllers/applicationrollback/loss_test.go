package applicationrollback_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// C22, C64: a claim that the snapshot does not have is left as it is; where scaling down would delete it with its volume,
// neither a rollback nor its undoing begins.
func TestRollback_losesNoClaimThatItLeaves(t *testing.T) {
	t.Parallel()
	w := captured(t)
	scale := func(whenScaled appsv1.PersistentVolumeClaimRetentionPolicyType) {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "db"}}
		hub.Change(w.World, set, func(s *appsv1.StatefulSet) {
			s.Spec.Replicas = ptr.To(int32(2))
			s.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
				WhenDeleted: appsv1.RetainPersistentVolumeClaimRetentionPolicyType, WhenScaled: whenScaled,
			}
		})
		w.awaitRunning("db-1")
	}
	const message = `StatefulSet "db" deletes its PersistentVolumeClaims when it is scaled down, and the rollback does not replace the volumes of data-db-1: ` +
		`set spec.persistentVolumeClaimRetentionPolicy.whenScaled to Retain`
	scale(appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
	left := w.claim("data-db-1").Spec.VolumeName

	r := w.rollback("refused", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackFailed)
	assert.Equal(t, message, r.Status.Error.Message)
	w.requireState(after)

	scale(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	hub.AwaitReady(w.World, w.application())
	r = w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackCompleted)
	w.requireState(before)
	scale(appsv1.DeletePersistentVolumeClaimRetentionPolicyType)
	w.decide(r, v1alpha1.RollbackUndone)
	assert.Equal(t, "the rollback cannot be undone: "+message, hub.AwaitReason(w.World, r, v1alpha1.UndoRefusedReason))

	scale(appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	hub.Reconcile(w.World, r)
	w.awaitPhase(r, v1alpha1.RollbackReverted)
	w.requireState(after)
	assert.Equal(t, left, w.claim("data-db-1").Spec.VolumeName)
}
