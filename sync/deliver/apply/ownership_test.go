package apply_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
)

func adopting(object manifest.Object) manifest.Object {
	object.SetAnnotations(map[string]string{v1alpha1.AdoptAnnotation: "true"})
	return object
}

// C13, C53
func TestOwnership_foreignObject(t *testing.T) {
	f := newFixture(t)
	f.create("configmaps", configMap(t, "settings", "foreign"))
	result := f.apply(nil, configMap(t, "settings", "ours"), configMap(t, "other", "ours"))

	require.Len(t, result.Problems, 1)
	assert.Equal(t, manifest.Problem{
		ID:     manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: f.namespace, Name: "settings"},
		File:   "settings.yaml",
		Line:   1,
		Reason: apply.ReasonConflict,
		Message: "it exists and Waybill did not make it; its fields are managed by kubectl-create; " +
			`to take it over, annotate the manifest with apps.waybill.dev/adopt: "true"`,
	}, result.Problems[0])
	assert.Equal(t, "foreign", f.value("settings"))
	assert.NotContains(t, f.live("configmaps", "settings").GetAnnotations(), v1alpha1.OwnerAnnotation)
	assert.Equal(t, "ours", f.value("other"), "what is ours is applied")

	requireClean(t, f.apply(result.Inventory, adopting(configMap(t, "settings", "ours")), configMap(t, "other", "ours")))
	assert.Equal(t, "ours", f.value("settings"))
	assert.Equal(t, f.owner.String(), f.live("configmaps", "settings").GetAnnotations()[v1alpha1.OwnerAnnotation])
}

// More than a few unknown objects are found by a list.
func TestOwnership_manyForeignObjects(t *testing.T) {
	f := newFixture(t)
	objects := configMaps(t, 10)
	for _, object := range objects[:5] {
		f.create("configmaps", manifest.Object{Unstructured: object.DeepCopy()})
	}
	result := f.apply(nil, objects...)
	assert.Len(t, result.Problems, 5)
	assert.Len(t, result.Changes, 5)
	assert.Len(t, f.requests.take(), 6)
}

func TestOwnership_otherOwners(t *testing.T) {
	f := newFixture(t)
	f.mustApply(nil, configMap(t, "settings", "first"))
	request := f.request(nil, configMap(t, "settings", "second"))
	cases := map[string]struct {
		owner apply.Owner
		want  string
	}{
		"SameHub":  {apply.Owner{HubID: "hub-1", Kind: "GitSync", Namespace: "team", Name: "second"}, "it belongs to GitSync team/" + f.namespace + "; "},
		"OtherHub": {apply.Owner{HubID: "hub-2", Kind: "GitSync", Namespace: "team", Name: f.namespace}, "it belongs to GitSync team/" + f.namespace + " of hub hub-1; "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request.Owner = tc.owner
			defer f.Forget(tc.owner)
			result := f.Apply(t.Context(), request)
			require.Len(t, result.Problems, 1)
			assert.Contains(t, result.Problems[0].Message, tc.want)
			assert.Equal(t, "first", f.value("settings"))
		})
	}
}

// An object that moves from one owner to another is taken as soon as it is free.
func TestOwnership_handedOver(t *testing.T) {
	f := newFixture(t)
	object := configMap(t, "settings", "one")
	first := f.mustApply(nil, object, configMap(t, "rest", "one"))
	second := f.request(nil, object)
	second.Owner.Name = "second"
	defer f.Forget(second.Owner)
	result := f.Apply(t.Context(), second)
	require.Len(t, result.Problems, 1)

	f.mustApply(first.Inventory, configMap(t, "rest", "one"))
	require.Equal(t, second.Owner, f.nextNotice())
	requireClean(t, f.Apply(t.Context(), second))
	assert.Equal(t, second.Owner.String(), f.live("configmaps", "settings").GetAnnotations()[v1alpha1.OwnerAnnotation])
}

// race has a second owner apply an object while the first write of it by the owner of the
// fixture is on its way, and returns what came of both.
func (f *fixture) race(second apply.Request, object manifest.Object) (firstResult, secondResult apply.Result) {
	f.t.Helper()
	done := make(chan apply.Result, 1)
	f.requests.interfere(http.MethodPatch, func() {
		about := make(chan struct{})
		second.Intent = func(context.Context, []manifest.ID) error {
			close(about)
			return nil
		}
		go func() { done <- f.Apply(f.t.Context(), second) }()
		<-about
	})
	return f.apply(nil, object), <-done
}

// W51: of two owners that look at the same moment, and find nothing, one creates the object;
// the other sees that, and leaves it.
func TestOwnership_createdByTwoAtOnce(t *testing.T) {
	f := newFixture(t)
	second := f.request(nil, configMap(t, "settings", "second"))
	second.Owner.Name = "second"
	defer f.Forget(second.Owner)
	won, lost := f.race(second, configMap(t, "settings", "first"))
	requireClean(t, won)
	require.Len(t, lost.Problems, 1)
	assert.Equal(t, apply.ReasonConflict, lost.Problems[0].Reason)
	assert.Contains(t, lost.Problems[0].Message, "it belongs to GitSync team/"+f.namespace+"; ")
	assert.Equal(t, "first", f.value("settings"))
	assert.Equal(t, f.owner.String(), f.live("configmaps", "settings").GetAnnotations()[v1alpha1.OwnerAnnotation])
}

// W51: an object that a user deletes is its owner's to recreate, also where another waits
// for it; that one has it when the owner wants it no more.
func TestOwnership_deletedByOthers(t *testing.T) {
	f := newFixture(t)
	object := configMap(t, "settings", "one")
	first := f.mustApply(nil, object, configMap(t, "rest", "one"))
	second := f.request(nil, object)
	second.Owner.Name = "second"
	defer f.Forget(second.Owner)
	require.Len(t, f.Apply(t.Context(), second).Problems, 1)

	f.delete("configmaps", "settings")
	require.ElementsMatch(t, []apply.Owner{f.owner, second.Owner}, []apply.Owner{f.nextNotice(), f.nextNotice()})
	lost := f.Apply(t.Context(), second)
	require.Len(t, lost.Problems, 1)
	assert.Contains(t, lost.Problems[0].Message, "it belongs to GitSync team/"+f.namespace+"; ")
	require.Nil(t, f.live("configmaps", "settings"))

	f.mustApply(first.Inventory, configMap(t, "rest", "one"))
	require.Equal(t, second.Owner, f.nextNotice(), "no other is about to create it")
	requireClean(t, f.Apply(t.Context(), second))
}

// Two that adopt one object do not take it from one another for ever.
func TestOwnership_adoptedByTwo(t *testing.T) {
	f := newFixture(t)
	first := f.request(nil, adopting(configMap(t, "settings", "first")))
	second := f.request(nil, adopting(configMap(t, "settings", "second")))
	second.Owner.Name = "second"
	defer f.Forget(second.Owner)
	requireClean(t, f.Apply(t.Context(), first))
	requireClean(t, f.Apply(t.Context(), second))
	require.Equal(t, first.Owner, f.nextNotice(), "who lost it is told")

	lost := f.Apply(t.Context(), first)
	require.Len(t, lost.Problems, 1)
	assert.Contains(t, lost.Problems[0].Message, "it belongs to GitSync team/second")
	assert.Equal(t, "second", f.value("settings"))
	requireClean(t, f.Apply(t.Context(), second))
}

// A hub that was restored from a backup owns what it made, whatever it remembers
// (C13, C40).
func TestOwnership_restoredHub(t *testing.T) {
	f := newFixture(t)
	f.mustApply(nil, configMap(t, "settings", "one"))
	f.restart()
	requireClean(t, f.apply(nil, configMap(t, "settings", "two")))
	assert.Equal(t, "two", f.value("settings"))
}

// C13: a Namespace is an object like any other.
func TestOwnership_foreignNamespace(t *testing.T) {
	f := newFixture(t)
	other := f.cluster.Namespace(t)
	result := f.apply(nil, parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+other+"}}"), configMap(t, "settings", "one"))
	require.Len(t, result.Problems, 1)
	assert.Equal(t, apply.ReasonConflict, result.Problems[0].Reason)
	assert.NotNil(t, f.live("configmaps", "settings"))
}

// Between the look and the write there is time for another writer.
func TestOwnership_somebodyIsFaster(t *testing.T) {
	f := newFixture(t)
	take := func() {
		if f.live("configmaps", "settings") != nil {
			f.delete("configmaps", "settings")
		}
		f.create("configmaps", configMap(t, "settings", "foreign"))
	}
	f.requests.interfere("PATCH", take)
	created := f.apply(nil, configMap(t, "settings", "one"))
	require.Len(t, created.Problems, 1, "an object that appears is not taken over")
	assert.Contains(t, created.Problems[0].Message, "its fields are managed by kubectl-create")
	assert.Equal(t, "foreign", f.value("settings"))

	f.delete("configmaps", "settings")
	first := f.mustApply(nil, configMap(t, "settings", "one"))
	f.requests.interfere("PATCH", take)
	changed := f.apply(first.Inventory, configMap(t, "settings", "two"))
	require.Len(t, changed.Problems, 1, "an object that was ours is looked at again")
	assert.Equal(t, apply.ReasonConflict, changed.Problems[0].Reason)
	assert.Equal(t, "foreign", f.value("settings"))

	f.delete("configmaps", "settings")
	first = f.mustApply(nil, configMap(t, "settings", "one"))
	f.requests.interfere("PATCH", func() { f.delete("configmaps", "settings") })
	f.mustApply(first.Inventory, configMap(t, "settings", "two"))
	assert.Equal(t, "two", f.value("settings"), "what was deleted meanwhile is created")

	f.requests.interfere("DELETE", take)
	pruned := f.mustApply(first.Inventory)
	assert.Empty(t, pruned.Inventory)
	assert.Equal(t, "foreign", f.value("settings"), "what was replaced meanwhile is not deleted")
}
