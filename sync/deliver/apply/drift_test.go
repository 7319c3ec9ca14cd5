package apply_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/manifest"
)

// C53
func TestDrift_editedAndDeleted(t *testing.T) {
	f := newFixture(t)
	objects := configMaps(t, 20)
	first := f.mustApply(nil, objects...)

	f.edit("configmaps", "settings-003", `{"data":{"key":"edited"}}`)
	f.awaitNotice()
	seen, known := f.Observe(f.owner)
	require.True(t, known)
	assert.False(t, seen.Settled)
	assert.Equal(t, []manifest.ID{first.Inventory[3]}, seen.Drifted)
	f.requests.take()
	repaired := f.mustApply(first.Inventory, objects...)
	assert.Len(t, f.requests.take(), 1, "only what was edited is applied")
	assert.Equal(t, []apply.Change{{ID: first.Inventory[3], Action: apply.Corrected}}, repaired.Changes)
	assert.Equal(t, "one", f.value("settings-003"))

	f.delete("configmaps", "settings-004")
	f.awaitNotice()
	f.requests.take()
	repaired = f.mustApply(first.Inventory, objects...)
	assert.Len(t, f.requests.take(), 1, "an apply, which is refused unless it is really gone")
	assert.Equal(t, []apply.Change{{ID: first.Inventory[4], Action: apply.Created, Again: true}}, repaired.Changes)
	seen, _ = f.Observe(f.owner)
	assert.True(t, seen.Settled)
}

// A deleted or edited object is back after one notice, however often that happens.
func TestDrift_timeAndAgain(t *testing.T) {
	f := newFixture(t)
	objects := configMaps(t, 20)
	first := f.mustApply(nil, objects...)
	for i := range 20 {
		name := fmt.Sprintf("settings-%03d", i)
		if i%2 == 0 {
			f.delete("configmaps", name)
		} else {
			f.edit("configmaps", name, `{"data":{"key":"edited"}}`)
		}
		f.awaitNotice()
		assert.Len(t, f.mustApply(first.Inventory, objects...).Changes, 1)
	}
}

// C53: fields that others add are no drift.
func TestDrift_notWhatOthersAdd(t *testing.T) {
	f := newFixture(t)
	deployment := parse(t, deploymentText)
	objects := []manifest.Object{configMap(t, "settings", "one"), configMap(t, "marker", "one"), deployment}
	first := f.mustApply(nil, objects...)
	f.requests.take()

	f.edit("configmaps", "settings", `{"metadata":{"annotations":{"note":"by hand"},"labels":{"team":"x"}},"data":{"more":"by hand"}}`)
	_, err := f.admin.dynamic.Resource(resource("deployments")).Namespace(f.namespace).Patch(t.Context(), "web", types.MergePatchType,
		[]byte(`{"status":{"replicas":3}}`), metav1.PatchOptions{FieldManager: "kube-controller-manager"}, "status")
	require.NoError(t, err)
	f.assertQuiet("marker")

	f.mustApply(first.Inventory, objects...)
	assert.Equal(t, []string{"PATCH /api/v1/namespaces/" + f.namespace + "/configmaps/marker"}, f.requests.take())
	live := f.live("configmaps", "settings")
	assert.Equal(t, "by hand", live.Object["data"].(map[string]any)["more"], "and stay")
	assert.Equal(t, "by hand", live.GetAnnotations()["note"])
}

const deploymentText = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
`

// A label that vanished is looked at before it is believed (C53).
func TestDrift_labelTakenAway(t *testing.T) {
	f := newFixture(t)
	object := configMap(t, "settings", "one")
	first := f.mustApply(nil, object)
	uid := f.live("configmaps", "settings").GetUID()
	cases := map[string]string{
		"Label":    `{"metadata":{"labels":{"` + v1alpha1.OwnerHashLabel + `":null}}}`,
		"AllMarks": `{"metadata":{"labels":null,"annotations":null}}`,
	}
	for name, patch := range cases {
		t.Run(name, func(t *testing.T) {
			f.edit("configmaps", "settings", patch)
			f.awaitNotice()
			repaired := f.mustApply(first.Inventory, object)
			assert.Equal(t, []apply.Change{{ID: first.Inventory[0], Action: apply.Corrected}}, repaired.Changes)
			live := f.live("configmaps", "settings")
			assert.Equal(t, uid, live.GetUID(), "it is the same object")
			assert.Equal(t, f.owner.Hash(), live.GetLabels()[v1alpha1.OwnerHashLabel])
			assert.Equal(t, f.owner.String(), live.GetAnnotations()[v1alpha1.OwnerAnnotation])
		})
	}
}

// After a restart, nothing but the inventory and the fields tell that it was ours.
func TestDrift_allMarksTakenAwayWhileDown(t *testing.T) {
	f := newFixture(t)
	object := configMap(t, "settings", "one")
	first := f.mustApply(nil, object)
	f.edit("configmaps", "settings", `{"metadata":{"labels":null,"annotations":null}}`)
	f.restart()

	repaired := f.mustApply(first.Inventory, object)
	assert.Equal(t, []apply.Change{{ID: first.Inventory[0], Action: apply.Configured}}, repaired.Changes)
}

func TestDrift_madeAnewBySomebodyElse(t *testing.T) {
	f := newFixture(t)
	object := configMap(t, "settings", "one")
	first := f.mustApply(nil, object)
	f.delete("configmaps", "settings")
	f.create("configmaps", configMap(t, "settings", "foreign"))
	f.awaitNotice()

	result := f.apply(first.Inventory, object)
	require.Len(t, result.Problems, 1)
	assert.Equal(t, apply.ReasonConflict, result.Problems[0].Reason)
	assert.Equal(t, "foreign", f.value("settings"), "it is not ours any more")
}

// Events that happen while a request is under way must not be lost.
func TestDrift_duringApply(t *testing.T) {
	f := newFixture(t)
	objects := configMaps(t, 30)
	first := f.mustApply(nil, objects...)
	for round := range 5 {
		value := fmt.Sprintf("round-%d", round)
		for i := range objects {
			objects[i] = configMap(t, fmt.Sprintf("settings-%03d", i), value)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range objects {
				name := fmt.Sprintf("settings-%03d", i)
				_ = f.admin.dynamic.Resource(resource("configmaps")).Namespace(f.namespace).Delete(t.Context(), name, metav1.DeleteOptions{})
			}
		}()
		f.Apply(t.Context(), f.request(first.Inventory, objects...))
		<-done
		f.until(f.request(first.Inventory, objects...), func(r apply.Result) bool {
			seen, _ := f.Observe(f.owner)
			if !clean(r) || !seen.Settled {
				return false
			}
			for i := range objects {
				if f.live("configmaps", fmt.Sprintf("settings-%03d", i)) == nil {
					return false
				}
			}
			return true
		})
	}
}
