package apply_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
)

func configMaps(t testing.TB, count int) []manifest.Object {
	var objects []manifest.Object
	for i := range count {
		objects = append(objects, configMap(t, fmt.Sprintf("settings-%03d", i), "one"))
	}
	return objects
}

// C53
func TestApply_oneRequestPerObject(t *testing.T) {
	f := newFixture(t)
	objects := configMaps(t, 50)
	result := f.mustApply(nil, objects...)

	assert.Len(t, result.Changes, 50)
	assert.Equal(t, apply.Created, result.Changes[0].Action)
	assert.Len(t, result.Inventory, 50)
	assert.Equal(t, manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: f.namespace, Name: "settings-000"}, result.Inventory[0])
	assert.Len(t, f.requests.take(), 51, "one for each, and one list to see that none of them exists")

	live := f.live("configmaps", "settings-007")
	assert.Equal(t, f.owner.String(), live.GetAnnotations()[v1alpha1.OwnerAnnotation])
	assert.Equal(t, f.owner.Hash(), live.GetLabels()[v1alpha1.OwnerHashLabel])
	f.assertQuiet("settings-049")
}

func TestApply_nothingChangedCostsNothing(t *testing.T) {
	f := newFixture(t)
	objects := configMaps(t, 50)
	first := f.mustApply(nil, objects...)
	f.requests.take()

	again := f.mustApply(first.Inventory, objects...)
	assert.Empty(t, f.requests.take())
	assert.Empty(t, again.Changes)
	assert.Equal(t, first.Inventory, again.Inventory)
}

// Progress counts what is as requested, whether or not it had to be written.
func TestApply_countsItsProgress(t *testing.T) {
	f := newFixture(t)
	objects, progress := configMaps(t, 10), &apply.Progress{}
	objects = append(objects, configMap(t, "NOT-A-NAME", "one"))
	request := f.request(nil, objects...)
	request.Progress = progress
	for range 2 {
		require.NoError(t, f.Apply(t.Context(), request).Err)
		applied, all := progress.Counts()
		assert.Equal(t, 10, applied)
		assert.Equal(t, 11, all)
	}
}

func TestApply_oneOfMany(t *testing.T) {
	f := newFixture(t)
	objects := configMaps(t, 50)
	first := f.mustApply(nil, objects...)
	f.requests.take()

	objects[7] = configMap(t, "settings-007", "two")
	again := f.mustApply(first.Inventory, objects...)
	assert.Equal(t, []string{"PATCH /api/v1/namespaces/" + f.namespace + "/configmaps/settings-007"}, f.requests.take())
	assert.Equal(t, []apply.Change{{ID: first.Inventory[7], Action: apply.Configured}}, again.Changes)
	assert.Equal(t, "two", f.value("settings-007"))
}

func TestApply_newProcessAppliesOnceMore(t *testing.T) {
	f := newFixture(t)
	objects := configMaps(t, 50)
	first := f.mustApply(nil, objects...)
	f.restart()
	f.requests.take()

	again := f.mustApply(first.Inventory, objects...)
	assert.Len(t, f.requests.take(), 50)
	assert.Empty(t, again.Changes, "and changes nothing")
	f.mustApply(first.Inventory, objects...)
	assert.Empty(t, f.requests.take())
}

// The manifests are shared between the appliers of many clusters.
func TestApply_leavesManifestsAlone(t *testing.T) {
	f := newFixture(t)
	object := parse(t, `{apiVersion: v1, kind: Secret, metadata: {name: a, labels: {x: "y"}, uid: u, resourceVersion: "1"}, stringData: {k: v}}`)
	before := object.DeepCopy()
	f.mustApply(nil, object)
	assert.Equal(t, before, object.Unstructured)
	require.NotNil(t, f.live("secrets", "a"))
}

// C59
func TestApply_namespaces(t *testing.T) {
	f := newFixture(t)
	other := f.cluster.Namespace(t)
	role := parse(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "+f.namespace+", namespace: nonsense}}")
	named := configMap(t, "named", "one")
	named.SetNamespace(other)
	result := f.mustApply(nil, configMap(t, "unnamed", "one"), named, role)

	namespaces := map[string]string{}
	for _, id := range result.Inventory {
		namespaces[id.Name] = id.Namespace
	}
	assert.Equal(t, map[string]string{"unnamed": f.namespace, "named": other, f.namespace: ""}, namespaces)
	left := f.Delete(t.Context(), f.owner, result.Inventory)
	requireClean(t, left)
	assert.Empty(t, left.Inventory)
}

// C59: they are one object only once the namespace is filled in.
func TestApply_duplicates(t *testing.T) {
	f := newFixture(t)
	first, second := configMap(t, "twice", "one"), configMap(t, "twice", "two")
	first.File, second.File, second.Line = "a.yaml", "b.yaml", 7
	second.SetNamespace(f.namespace)
	result := f.apply(nil, first, second, configMap(t, "once", "one"))

	require.Len(t, result.Problems, 2)
	for i, want := range []string{"in b.yaml:7 too", "in a.yaml:1 too"} {
		assert.Equal(t, manifest.ReasonDuplicateObject, result.Problems[i].Reason)
		assert.Contains(t, result.Problems[i].Message, want)
	}
	assert.Nil(t, f.live("configmaps", "twice"))
	assert.NotNil(t, f.live("configmaps", "once"))
}

func TestApply_secretDataIsWatched(t *testing.T) {
	f := newFixture(t)
	secret := parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: login}, stringData: {password: first}}")
	f.mustApply(nil, secret)

	f.edit("secrets", "login", `{"stringData":{"password":"other"}}`)
	f.awaitNotice()
	result := f.mustApply(nil, secret)
	assert.Equal(t, apply.Corrected, result.Changes[0].Action)
	assert.Equal(t, "Zmlyc3Q=", f.live("secrets", "login").Object["data"].(map[string]any)["password"])
}

// C41
func TestApply_intentComesBeforeTheFirstWrite(t *testing.T) {
	f := newFixture(t)
	objects := configMaps(t, 2)
	request := f.request(nil, objects...)
	var intents [][]manifest.ID
	request.Intent = func(_ context.Context, ids []manifest.ID) error {
		assert.Nil(t, f.live("configmaps", "settings-000"))
		intents = append(intents, ids)
		return nil
	}
	result := f.Apply(t.Context(), request)
	requireClean(t, result)
	require.Len(t, intents, 1)
	assert.Equal(t, result.Inventory, intents[0])

	request.Inventory, request.Objects[0] = result.Inventory, configMap(t, "settings-000", "two")
	requireClean(t, f.Apply(t.Context(), request))
	assert.Len(t, intents, 1, "nothing new is intended")

	request.Objects = append(request.Objects, configMap(t, "more", "one"))
	request.Intent = func(context.Context, []manifest.ID) error { return assert.AnError }
	result = f.Apply(t.Context(), request)
	require.ErrorIs(t, result.Err, assert.AnError)
	assert.Nil(t, f.live("configmaps", "more"))
}

func TestIntent(t *testing.T) {
	f := newFixture(t)
	role := parse(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r, namespace: nonsense}}")
	unknown := parse(t, "{apiVersion: example.com/v1, kind: Nothing, metadata: {name: other}}")
	assert.Equal(t, []manifest.ID{
		{Version: "v1", Kind: "ConfigMap", Namespace: "there", Name: "c"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "r"},
		{Group: "example.com", Version: "v1", Kind: "Nothing", Namespace: "there", Name: "other"},
		{Group: "example.com", Version: "v1", Kind: "Nothing", Name: "other"},
	}, f.Intent([]manifest.Object{configMap(t, "c", "one"), role, unknown}, "there"))
}

func TestForget_watchesNoMore(t *testing.T) {
	f := newFixture(t)
	f.mustApply(nil, configMap(t, "a", "one"))
	f.Forget(f.owner)
	_, known := f.Observe(f.owner)
	assert.False(t, known)
	assert.NotNil(t, f.live("configmaps", "a"), "the objects stay")

	f.requests.take()
	f.mustApply(nil, configMap(t, "a", "one"))
	assert.Len(t, f.requests.take(), 1, "it is applied as by a new process")
}

// A caller that forgets an owner does not wait for a cluster that is slow to answer.
func TestForget_doesNotWaitForAnApply(t *testing.T) {
	f := newFixture(t)
	objects := configMaps(t, 2)
	first := f.mustApply(nil, objects[0])
	f.requests.interfere(http.MethodPatch, func() { f.Forget(f.owner) })
	f.mustApply(first.Inventory, objects...)

	f.requests.take()
	f.mustApply(first.Inventory, objects...)
	assert.Len(t, f.requests.take(), 2, "what the Apply that was under way found out is forgotten too")
}
