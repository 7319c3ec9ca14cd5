package apply_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
)

// surveyed applies with what an inventory of a backup names, and returns the warnings.
func (f *fixture) surveyed(before []manifest.ID, objects ...manifest.Object) []manifest.Problem {
	f.t.Helper()
	request := f.request(before, objects...)
	request.Survey = true
	result := f.Apply(f.t.Context(), request)
	require.NoError(f.t, result.Err)
	require.Empty(f.t, result.Problems)
	return result.Warnings
}

// A hub that was restored from a backup names what it delivered since then and does not want any
// more, for as long as that is there, and deletes nothing that only a mark makes its own (C40, C41).
func TestSurvey_namesWhatTheInventoryDoesNotKnow(t *testing.T) {
	f := newFixture(t)
	backup := f.mustApply(nil, configMap(t, "old", "one")).Inventory
	kept := configMap(t, "kept", "one")
	kept.SetAnnotations(map[string]string{v1alpha1.PruneAnnotation: "disabled"})
	f.mustApply(backup, configMap(t, "old", "one"), configMap(t, "later", "one"), kept)
	forged := configMap(t, "forged", "one")
	forged.SetLabels(map[string]string{v1alpha1.OwnerHashLabel: f.owner.Hash()})
	forged.SetAnnotations(map[string]string{v1alpha1.OwnerAnnotation: f.owner.String()})
	f.create("configmaps", forged)

	f.restart()
	f.requests.take()
	warnings := f.surveyed(backup, configMap(t, "old", "one"))
	require.Len(t, warnings, 1, "not what the prune annotation keeps, nor what we never wrote")
	assert.Equal(t, manifest.Problem{
		ID: manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: f.namespace, Name: "later"}, Reason: apply.ReasonStray,
		Message: "it carries the mark of this GitSync, and is in neither its source nor its inventory: delete it if it is not needed",
	}, warnings[0])
	assert.Len(t, f.requests.take(), 1, "the one object that is wanted is applied; nothing is asked for the others")
	for _, name := range []string{"later", "kept", "forged"} {
		assert.NotNil(t, f.live("configmaps", name), name)
	}
	assert.Equal(t, warnings, f.surveyed(backup, configMap(t, "old", "one")), "as long as it is there")
	assert.Empty(t, f.requests.take())

	f.delete("configmaps", "later")
	f.awaitNotice()
	seen, _ := f.Observe(f.owner)
	assert.False(t, seen.Settled, "there is something else to say")
	assert.Empty(t, f.surveyed(backup, configMap(t, "old", "one")))
}

// What cannot be read or applied is no less wanted.
func TestSurvey_waitsUntilEverythingIsKnown(t *testing.T) {
	f := newFixture(t)
	f.mustApply(nil, configMap(t, "old", "one"), configMap(t, "later", "one"))
	f.restart()
	request := f.request(nil, configMap(t, "old", "one"))
	request.Survey, request.Unread = true, []manifest.Problem{{File: "broken.yaml", Reason: manifest.ReasonInvalidManifest}}
	requireClean(t, f.Apply(t.Context(), request))
	request.Unread = nil
	require.Len(t, f.Apply(t.Context(), request).Warnings, 1)
	assert.Empty(t, f.surveyed(nil, configMap(t, "old", "one"), configMap(t, "later", "two")), "it is wanted again")
	assert.Empty(t, f.surveyed(nil, configMap(t, "old", "one"), configMap(t, "later", "two")))
}
