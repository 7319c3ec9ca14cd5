package apply_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
)

// released creates an object as Helm does for the owner of the fixture.
func (f *fixture) released(kind string, object manifest.Object) manifest.ID {
	f.t.Helper()
	object.SetNamespace(f.namespace)
	object.SetLabels(map[string]string{v1alpha1.OwnerHashLabel: f.owner.Hash()})
	object.SetAnnotations(map[string]string{v1alpha1.OwnerAnnotation: f.owner.String()})
	_, err := f.admin.dynamic.Resource(resource(kind)).Namespace(f.namespace).Create(f.t.Context(), object.Unstructured,
		metav1.CreateOptions{FieldManager: v1alpha1.HelmFieldManager})
	require.NoError(f.t, err)
	return object.ID()
}

// mustWatch watches where everything may be watched.
func (f *fixture) mustWatch(watched apply.Watched) {
	f.t.Helper()
	warnings, err := f.Watch(f.t.Context(), f.owner, watched)
	require.NoError(f.t, err)
	require.Empty(f.t, warnings)
}

// awaitDrift waits for a notice of drift: others may be about health.
func (f *fixture) awaitDrift() []manifest.ID {
	f.t.Helper()
	for {
		f.awaitNotice()
		if seen, _ := f.Observe(f.owner); len(seen.Drifted) > 0 {
			return seen.Drifted
		}
	}
}

// C53, C54
func TestWatch_helmObjects(t *testing.T) {
	f := newFixture(t)
	ids := []manifest.ID{f.released("configmaps", configMap(t, "one", "one")), f.released("deployments", parse(t, deploymentText))}
	f.mustWatch(apply.Watched{IDs: ids, Health: true})
	seen, known := f.Observe(f.owner)
	require.True(t, known)
	assert.True(t, seen.Settled)
	assert.Equal(t, 2, seen.Health.Total)

	f.edit("configmaps", "one", `{"metadata":{"annotations":{"note":"by hand"}}}`)
	f.edit("configmaps", "one", `{"data":{"key":"edited"}}`)
	assert.Equal(t, ids[:1], f.awaitDrift())
	seen, _ = f.Observe(f.owner)
	assert.False(t, seen.Settled)

	f.mustWatch(apply.Watched{IDs: ids, Anew: ids[1:]})
	seen, _ = f.Observe(f.owner)
	assert.Equal(t, ids[:1], seen.Drifted, "an edit before the second Watch is not taken for right")
	f.mustWatch(apply.Watched{IDs: ids, Anew: ids[:1]})
	seen, _ = f.Observe(f.owner)
	assert.True(t, seen.Settled, "what is there now is taken for right where that is asked for")
	f.delete("configmaps", "one")
	assert.Equal(t, ids[:1], f.awaitDrift())
	f.mustWatch(apply.Watched{IDs: ids})
	seen, _ = f.Observe(f.owner)
	assert.Equal(t, ids[:1], seen.Drifted, "what is missing is not right")
	assert.Equal(t, 1, seen.Health.Counts[health.NotFound])

	f.Unwatch(f.owner)
	_, known = f.Observe(f.owner)
	assert.False(t, known)
}

// C55: an installation applies its Application, and Helm writes the rest.
func TestWatch_besideApply(t *testing.T) {
	f := newFixture(t)
	id := f.released("configmaps", configMap(t, "by-helm", "one"))
	own := configMap(t, "own", "one")
	first := f.mustApply(nil, own)
	f.mustWatch(apply.Watched{IDs: []manifest.ID{id}})
	f.mustApply(first.Inventory, own)
	seen, _ := f.Observe(f.owner)
	assert.True(t, seen.Settled)
	assert.Equal(t, 2, seen.Health.Total)

	f.edit("configmaps", "own", `{"data":{"key":"edited"}}`)
	f.awaitNotice()
	f.edit("configmaps", "by-helm", `{"data":{"key":"edited"}}`)
	f.awaitNotice()
	seen, _ = f.Observe(f.owner)
	assert.Equal(t, []manifest.ID{first.Inventory[0], id}, seen.Drifted)

	assert.Empty(t, f.Delete(t.Context(), f.owner, first.Inventory).Inventory)
	seen, known := f.Observe(f.owner)
	require.True(t, known)
	assert.Equal(t, []manifest.ID{id}, seen.Drifted, "the watch goes on")
}

func TestWatch_unknownKind(t *testing.T) {
	f := newFixture(t)
	id := f.released("configmaps", configMap(t, "one", "one"))
	_, err := f.Watch(t.Context(), f.owner, apply.Watched{IDs: []manifest.ID{{Group: "example.com", Version: "v1", Kind: "Nothing", Name: "a"}, id}})
	require.ErrorContains(t, err, "watch Nothing: ")
	f.delete("configmaps", "one")
	f.awaitNotice()
}
