package apply_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
)

// P9
func TestPrune(t *testing.T) {
	f := newFixture(t)
	first := f.mustApply(nil, configMaps(t, 5)...)
	f.requests.take()
	second := f.mustApply(first.Inventory, configMaps(t, 3)...)

	assert.Equal(t, first.Inventory[:3], second.Inventory)
	assert.Equal(t, []apply.Change{{ID: first.Inventory[3], Action: apply.Deleted}, {ID: first.Inventory[4], Action: apply.Deleted}}, second.Changes)
	assert.Nil(t, f.live("configmaps", "settings-003"))
	assert.NotNil(t, f.live("configmaps", "settings-002"))
	f.assertQuiet("settings-002")
}

func TestPrune_off(t *testing.T) {
	f := newFixture(t)
	first := f.mustApply(nil, configMaps(t, 3)...)
	request := f.request(first.Inventory, configMaps(t, 2)...)
	request.Prune = false
	second := f.Apply(t.Context(), request)
	requireClean(t, second)
	assert.ElementsMatch(t, first.Inventory, second.Inventory, "it is remembered")
	assert.NotNil(t, f.live("configmaps", "settings-002"))
}

// C41
func TestPrune_onlyWhatIsOurs(t *testing.T) {
	f := newFixture(t)
	kept := configMap(t, "kept", "one")
	kept.SetAnnotations(map[string]string{v1alpha1.PruneAnnotation: "disabled"})
	objects := []manifest.Object{configMap(t, "gone", "one"), kept, configMap(t, "handed-over", "one"), configMap(t, "replaced", "one"), configMap(t, "stripped", "one"),
		configMap(t, "marked", "one")}
	first := f.mustApply(nil, objects...)

	f.delete("configmaps", "gone")
	f.edit("configmaps", "handed-over", `{"metadata":{"annotations":{"apps.waybill.dev/owner":"hub-1/GitSync/team/other"}}}`)
	f.delete("configmaps", "replaced")
	f.create("configmaps", configMap(t, "replaced", "foreign"))
	f.edit("configmaps", "stripped", `{"metadata":{"labels":null}}`)
	f.edit("configmaps", "marked", `{"metadata":{"annotations":{"apps.waybill.dev/prune":"disabled"}}}`)
	second := f.mustApply(first.Inventory)

	assert.Empty(t, second.Inventory)
	actions := map[string]apply.Action{}
	for _, change := range second.Changes {
		actions[change.ID.Name] = change.Action
	}
	assert.Equal(t, map[string]apply.Action{
		"kept": apply.Released, "handed-over": apply.Released, "replaced": apply.Released, "stripped": apply.Deleted, "marked": apply.Deleted,
	}, actions)
	for _, name := range []string{"kept", "handed-over", "replaced"} {
		assert.NotNil(t, f.live("configmaps", name), name)
	}
	assert.Nil(t, f.live("configmaps", "stripped"), "its annotation still says whose it is")
	assert.Nil(t, f.live("configmaps", "marked"), "no manifest asked to keep it")
}

// C41: an object that changes faster than it can be looked at stays for now, and what is said of that
// is the same each time.
func TestPrune_changesAllTheTime(t *testing.T) {
	f := newFixture(t)
	first := f.mustApply(nil, configMap(t, "busy", "one"))
	edits := 0
	var edit func()
	edit = func() {
		edits++
		f.edit("configmaps", "busy", fmt.Sprintf(`{"data":{"edits":"%d"}}`, edits))
		f.requests.interfere(http.MethodDelete, edit)
	}
	f.requests.interfere(http.MethodDelete, edit)
	second := f.apply(first.Inventory)
	require.Len(t, second.Problems, 1)
	assert.Equal(t, "the object was modified concurrently; its deletion is retried", second.Problems[0].Message)
	assert.Len(t, second.Inventory, 1)

	f.requests.interfere(http.MethodDelete, func() {})
	third := f.mustApply(second.Inventory)
	assert.Empty(t, third.Inventory)
	assert.Nil(t, f.live("configmaps", "busy"))
}

// An object that cannot be gone yet stays in the inventory, and its end is notified.
func TestPrune_terminating(t *testing.T) {
	f := newFixture(t)
	held := configMap(t, "held", "one")
	held.SetFinalizers([]string{"example.com/hold"})
	first := f.mustApply(nil, held)

	second := f.apply(first.Inventory)
	assert.Empty(t, second.Problems)
	assert.Equal(t, first.Inventory, second.Waiting)
	assert.Equal(t, first.Inventory, second.Inventory)
	third := f.apply(second.Inventory)
	assert.Equal(t, first.Inventory, third.Inventory)
	assert.Empty(t, third.Changes, "it is told to go only once")

	f.edit("configmaps", "held", `{"metadata":{"finalizers":null}}`)
	f.awaitNotice()
	assert.Empty(t, f.mustApply(third.Inventory).Inventory)
}

func TestPrune_afterRestart(t *testing.T) {
	f := newFixture(t)
	first := f.mustApply(nil, configMaps(t, 2)...)
	f.restart()
	assert.Empty(t, f.mustApply(first.Inventory).Inventory)
	assert.Nil(t, f.live("configmaps", "settings-000"))
}

// A kind that is not served any more has no objects.
func TestPrune_kindIsGone(t *testing.T) {
	f := newFixture(t)
	lost := []manifest.ID{
		{Group: "example.com", Version: "v1", Kind: "Lost", Namespace: f.namespace, Name: "a"},
		{Group: "apps", Version: "v1", Kind: "Lost", Namespace: f.namespace, Name: "a"},
		{Group: "apps", Version: "v1beta1", Kind: "Deployment", Namespace: f.namespace, Name: "web"},
	}
	f.mustApply(nil, parse(t, deploymentText))
	result := f.mustApply(lost)
	assert.Empty(t, result.Inventory)
	assert.Nil(t, f.live("deployments", "web"), "another version of the kind is served")
}

func TestDelete(t *testing.T) {
	f := newFixture(t)
	space := f.namespace + "-own"
	inner := configMap(t, "inner", "one")
	inner.SetNamespace(space)
	first := f.mustApply(nil, parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+space+"}}"), inner, configMap(t, "outer", "one"))

	left := f.Delete(t.Context(), f.owner, first.Inventory)
	require.NoError(t, left.Err)
	assert.Equal(t, []manifest.ID{{Version: "v1", Kind: "Namespace", Name: space}}, left.Inventory, "its controller takes it down")
	assert.Nil(t, f.live("configmaps", "outer"))
	for len(left.Inventory) > 0 {
		f.awaitNotice()
		left = f.Delete(t.Context(), f.owner, left.Inventory)
		require.NoError(t, left.Err)
	}
	again := f.Delete(t.Context(), f.owner, first.Inventory)
	requireClean(t, again)
	assert.Empty(t, again.Inventory, "deleting twice is fine")
}

// P9, C41: deleting a Namespace would delete what is to stay in it, or belongs to another owner by now.
func TestPrune_namespaceOfWhatStays(t *testing.T) {
	for name, tc := range map[string]struct{ reason, edit string }{
		"Kept":       {"its manifest has the annotation", `{}`},
		"HandedOver": {"it is somebody else's", `{"metadata":{"annotations":{"apps.waybill.dev/owner":"hub-1/GitSync/team/other"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			marks := map[string]string{}
			if name == "Kept" {
				marks[v1alpha1.PruneAnnotation] = "disabled"
			}
			first := f.withSpace(marks)
			_, err := f.admin.dynamic.Resource(resource("configmaps")).Namespace(f.space()).Patch(t.Context(), "stays", mergePatch, []byte(tc.edit), metav1.PatchOptions{})
			require.NoError(t, err)
			left := f.until(f.request(first.Inventory), clean)
			assert.Empty(t, left.Inventory)
			assert.True(t, f.hasSpace(), tc.reason)
		})
	}
}

// P9: so it would what may not be deleted.
func TestPrune_namespaceOfWhatMayNotBeDeleted(t *testing.T) {
	user, config := newUser(t)
	f := newFixtureAs(t, shared(t), config)
	spaces := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"*"}}
	change := f.grantEverywhere(user, spaces, mayDo("get", "list", "watch", "create", "patch"))
	first := f.withSpace(nil)
	left := f.apply(first.Inventory)
	require.Len(t, left.Problems, 2)
	assert.ElementsMatch(t, first.Inventory, left.Inventory)
	assert.True(t, f.hasSpace())

	change(spaces, mayDo("*"))
	f.cluster.AwaitGranted(t, user, "", mayDo("delete"))
	f.apply(left.Inventory)
	assert.False(t, f.hasSpace())
}

// withSpace delivers a Namespace with two ConfigMaps in it, one of them with annotations.
func (f *fixture) withSpace(marks map[string]string) apply.Result {
	f.t.Helper()
	goes, stays := configMap(f.t, "goes", "one"), configMap(f.t, "stays", "one")
	stays.SetAnnotations(marks)
	goes.SetNamespace(f.space())
	stays.SetNamespace(f.space())
	return f.until(f.request(nil, parse(f.t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+f.space()+"}}"), goes, stays), clean)
}

// space is the name of that Namespace.
func (f *fixture) space() string { return f.namespace + "-space" }

// hasSpace reports whether it is there to stay.
func (f *fixture) hasSpace() bool {
	f.t.Helper()
	space, err := f.admin.dynamic.Resource(resource("namespaces")).Get(f.t.Context(), f.space(), metav1.GetOptions{})
	require.NoError(f.t, err)
	return space.GetDeletionTimestamp() == nil
}

// What is annotated is kept, unless the owner says otherwise.
func TestPrune_unkept(t *testing.T) {
	f := newFixture(t)
	kept := configMaps(t, 2)
	for _, object := range kept {
		object.SetAnnotations(map[string]string{v1alpha1.PruneAnnotation: "disabled"})
	}
	first := f.mustApply(nil, kept...)
	request := f.request(first.Inventory)
	request.Unkept = first.Inventory[:1]
	requireClean(t, f.until(request, clean))
	assert.Nil(t, f.live("configmaps", first.Inventory[0].Name))
	assert.NotNil(t, f.live("configmaps", first.Inventory[1].Name))
}
