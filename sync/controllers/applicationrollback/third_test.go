package applicationrollback_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env/csidriver"
	"waybill.dev/waybill/test/hub"
)

// C22, C64: a claim that was created again in the middle of a rollback has a volume that the rollback does not know: it is
// not deleted with that, and the rollback goes back to the volume of before once the user has decided.
func TestRollback_deletesNoClaimWithAThirdVolume(t *testing.T) {
	t.Parallel()
	w := captured(t)
	old := w.claim("data-db-0").Spec.VolumeName
	busy := csidriver.Fault{Method: "CreateVolume", Namespace: w.Namespace, Code: codes.Unavailable, Message: "busy"}
	releaseAll := w.Driver.Inject(busy)
	defer releaseAll()
	r := w.rollback("back", "one")
	w.Create(r)
	w.awaitPhase(r, v1alpha1.RollbackRestoring)
	busy.Name = r.Status.Volumes[0].Beside
	release := w.Driver.Inject(busy)
	defer release()
	releaseAll()
	claim := w.claim("data-db-0")
	require.NoError(t, w.Client.Delete(t.Context(), claim))
	w.AwaitGone(claim, claim.Name)
	third := w.boundVolume("data-db-0")
	release()

	hub.Await(w.World, r, "it does not refuse", func(r *v1alpha1.ApplicationRollback) bool {
		return r.Status.Phase == v1alpha1.RollbackReverting &&
			strings.Contains(conditions.GetMessage(r, v1alpha1.ReadyCondition), `it has PersistentVolume "`+third+`", which is not of this rollback`)
	})
	assert.Contains(t, r.Status.Error.Message, "Swapping: ")
	claim = w.claim("data-db-0")
	assert.Equal(t, third, claim.Spec.VolumeName)
	assert.Nil(t, claim.DeletionTimestamp)

	require.NoError(t, w.Client.Delete(t.Context(), claim))
	w.awaitPhase(r, v1alpha1.RollbackReverted)
	w.requireState(after)
	assert.Equal(t, old, w.claim("data-db-0").Spec.VolumeName)
}
