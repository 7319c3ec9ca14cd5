package webhooks_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// C35: the snapshot that rights were checked for is the one that is restored: who replaces it does not
// decide what a restore of another user creates.
func TestData_theSourceIsPinned(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ns := c.Namespace(t)
	monday := readySnapshot(t, admin, ns, "services")
	app, back := newRestore(ns, ""), newRollback(ns, "mongo")
	require.NoError(t, admin.Create(t.Context(), app))
	assert.Equal(t, string(monday.UID), app.Spec.Source.SnapshotRef.UID)
	require.NoError(t, admin.Create(t.Context(), back))
	assert.Equal(t, string(monday.UID), back.Spec.Source.SnapshotRef.UID)

	require.NoError(t, admin.Delete(t.Context(), monday))
	replaced := readySnapshot(t, admin, ns, "secrets")
	require.NotEqual(t, monday.UID, replaced.UID)
	for _, obj := range []client.Object{app, back} { // as who applies a file does, which has no UID
		ref := refOf(obj)
		ref.UID = ""
		obj.SetLabels(map[string]string{"a": "b"})
		require.NoError(t, c.with(t, ns).Update(t.Context(), obj), "nothing has changed")
		assert.Equal(t, string(monday.UID), refOf(obj).UID, "%T", obj)
	}
	app.Spec.ValueSubstitutionRules = []v1alpha1.ValueSubstitutionRule{{Type: v1alpha1.SubstitutionLabel, OldValue: "a"}}
	err := admin.Update(t.Context(), app)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	assert.ErrorContains(t, err, "the ApplicationSnapshot of that name is another one: remove uid to use it")

	again := newRestore(ns, "")
	again.Name, again.Spec.Source.SnapshotRef.UID = "again", string(monday.UID)
	require.True(t, apierrors.IsInvalid(admin.Create(t.Context(), again)), "a UID that its writer gave")
}

func refOf(obj client.Object) *v1alpha1.SnapshotReference {
	if app, ok := obj.(*v1alpha1.StatefulApplication); ok {
		return app.Spec.Source.SnapshotRef
	}
	return obj.(*v1alpha1.ApplicationRollback).Spec.Source.SnapshotRef
}

// C35: as long as nothing has been restored the source may be another one: with the rights for that.
func TestData_theSourceOfARestoreThatHasNotBegun(t *testing.T) {
	c := admission(t)
	admin, _ := c.admin(t)
	ns, other := c.Namespace(t), c.Namespace(t)
	readySnapshot(t, admin, ns, "services")
	elsewhere := readySnapshot(t, admin, other, "secrets")
	app := newRestore(ns, "")
	require.NoError(t, admin.Create(t.Context(), app))

	user := c.with(t, ns, mayRestore())
	changed := app.DeepCopy()
	changed.Spec.Source.SnapshotRef.Namespace = other // the UID of the old one is still there
	require.True(t, apierrors.IsForbidden(user.Update(t.Context(), changed.DeepCopy())))
	require.NoError(t, admin.Update(t.Context(), changed))
	assert.Equal(t, string(elsewhere.UID), changed.Spec.Source.SnapshotRef.UID)

	changed.Spec.ApplicationClassName = "another"
	require.NoError(t, user.Update(t.Context(), changed), "a class gives no rights")
	changed.Spec.ValueSubstitutionRules = []v1alpha1.ValueSubstitutionRule{{Type: v1alpha1.SubstitutionLabel, OldValue: "a"}}
	require.True(t, apierrors.IsForbidden(user.Update(t.Context(), changed)), "rules decide what is created")
}
