package apply_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
)

// P1: after a restart, nothing is asked or written of what has not changed meanwhile, and what has
// changed is found, whatever they changed and under whose name.
func TestApply_takesUpWhatTheProcessBeforeLeft(t *testing.T) {
	unmarked := `{"metadata":{"labels":{"apps.waybill.dev/owner-hash":null},"annotations":{"apps.waybill.dev/owner":null}}}`
	for name, tc := range map[string]struct {
		reason    string
		meanwhile func(f *fixture)
		wanted    string
		unchanged bool
	}{
		"Nothing":      {"nobody did anything", func(*fixture) {}, "one", true},
		"ElseAdded":    {"others add fields of their own", func(f *fixture) { f.edit("configmaps", "a", `{"data":{"theirs":"x"}}`) }, "one", true},
		"Edited":       {"a field of ours", func(f *fixture) { f.edit("configmaps", "a", `{"data":{"key":"two"}}`) }, "one", false},
		"EditedAsUs":   {"under our name, as anybody may", func(f *fixture) { f.editAsUs("a", "two") }, "one", false},
		"Deleted":      {"it is gone", func(f *fixture) { f.delete("configmaps", "a") }, "one", false},
		"Recreated":    {"another of that name", func(f *fixture) { f.delete("configmaps", "a"); f.create("configmaps", configMap(t, "a", "one")) }, "one", false},
		"MarksRemoved": {"it does not say whose it is any more", func(f *fixture) { f.edit("configmaps", "a", unmarked) }, "one", false},
		"ElseWanted":   {"the manifest changed", func(*fixture) {}, "two", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			first := f.mustApply(nil, configMap(t, "a", "one"), configMap(t, "b", "one"))
			digest := f.Digest(f.owner)
			require.NotEmpty(t, digest)
			tc.meanwhile(f)
			f.restart()
			f.requests.take()

			request := f.request(first.Inventory, configMap(t, "a", tc.wanted), configMap(t, "b", "one"))
			request.Digest = digest
			adopted := name == "Recreated"
			result := f.Apply(t.Context(), request)
			assert.Equal(t, tc.unchanged, result.Unchanged, tc.reason)
			if adopted {
				assert.Len(t, result.Problems, 1, "it is another's")
				assert.Empty(t, f.Digest(f.owner))
				return
			}
			requireClean(t, result)
			assert.Equal(t, tc.wanted, f.value("a"), tc.reason)
			if tc.unchanged {
				assert.Empty(t, f.requests.take())
				assert.Equal(t, digest, f.Digest(f.owner))
			}
			f.edit("configmaps", "b", `{"data":{"key":"drift"}}`)
			f.awaitNotice()
		})
	}
}

// editAsUs changes a ConfigMap as a user who claims to be Waybill, at another second than it was
// written.
func (f *fixture) editAsUs(name, value string) {
	f.t.Helper()
	live := f.live("configmaps", name)
	written := live.GetManagedFields()[0].Time.Time
	for {
		theirs := configMap(f.t, name, value).Unstructured
		theirs.SetLabels(live.GetLabels())
		theirs.SetAnnotations(live.GetAnnotations())
		changed, err := f.admin.dynamic.Resource(resource("configmaps")).Namespace(f.namespace).
			Apply(f.t.Context(), name, theirs, metav1.ApplyOptions{FieldManager: v1alpha1.FieldManager, Force: true})
		require.NoError(f.t, err)
		if changed.GetManagedFields()[0].Time.After(written) {
			return
		}
		value += "!"
	}
}

// A digest is not known as long as it would lie.
func TestDigest_isEmptyWhileSomethingIsNotAsApplied(t *testing.T) {
	f := newFixture(t)
	assert.Empty(t, f.Digest(f.owner), "nothing was applied")
	f.create("configmaps", configMap(t, "theirs", "x"))
	result := f.apply(nil, configMap(t, "a", "one"), configMap(t, "theirs", "y"))
	require.Len(t, result.Problems, 1)
	assert.Empty(t, f.Digest(f.owner), "a conflict")
	f.mustApply(result.Inventory, configMap(t, "a", "one"))
	require.NotEmpty(t, f.Digest(f.owner))
	f.edit("configmaps", "a", `{"data":{"key":"drift"}}`)
	f.awaitNotice()
	assert.Empty(t, f.Digest(f.owner), "drift")
}

// An absent object costs one request, and one that exists without our label is not touched.
func TestApply_looksForAnObjectOnlyIfThereIsOne(t *testing.T) {
	f := newFixture(t)
	f.requests.take()
	f.mustApply(nil, configMap(t, "a", "one"))
	assert.Equal(t, []string{"PATCH /api/v1/namespaces/" + f.namespace + "/configmaps/a"}, f.requests.take())

	f.create("configmaps", configMap(t, "theirs", "x"))
	f.create("configmaps", parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}"))
	before := []string{f.live("configmaps", "theirs").GetResourceVersion(), f.live("configmaps", "other").GetResourceVersion()}
	result := f.apply(nil, configMap(t, "a", "one"), configMap(t, "theirs", "two"), configMap(t, "other", "two"))
	require.Len(t, result.Problems, 2)
	for _, p := range result.Problems {
		assert.Equal(t, apply.ReasonConflict, p.Reason)
	}
	after := []string{f.live("configmaps", "theirs").GetResourceVersion(), f.live("configmaps", "other").GetResourceVersion()}
	assert.Equal(t, before, after)
}
