package apply_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/manifest"
)

const jobText = `
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  suspend: false
  template: {spec: {restartPolicy: Never, containers: [{name: main, image: main}]}}
`

// setStatus writes the status of an object as its controller would.
func (f *fixture) setStatus(kind, name, patch string) {
	f.t.Helper()
	_, err := f.admin.dynamic.Resource(resource(kind)).Namespace(f.namespace).Patch(f.t.Context(), name, mergePatch,
		[]byte(patch), metav1.PatchOptions{FieldManager: "controller"}, "status")
	require.NoError(f.t, err)
}

// C43
func TestHealth_comesByWatch(t *testing.T) {
	f := newFixture(t)
	request := f.request(nil, configMap(t, "settings", "one"), parse(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: "+
		"{accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}}"))
	request.Health = true
	first := f.Apply(t.Context(), request)
	requireClean(t, first)
	assert.False(t, first.Health.Healthy())
	assert.Equal(t, 2, first.Health.Total)
	assert.Equal(t, map[health.Status]int{health.Current: 1, health.InProgress: 1}, first.Health.Counts)

	f.setStatus("persistentvolumeclaims", "data", `{"status":{"phase":"Bound"}}`)
	f.requests.take()
	for {
		f.awaitNotice()
		seen, known := f.Observe(f.owner)
		require.True(t, known)
		assert.True(t, seen.Settled, "there is nothing to apply")
		if seen.Health.Healthy() {
			break
		}
	}
	request.Inventory = first.Inventory
	last := f.Apply(t.Context(), request)
	assert.True(t, last.Health.Healthy(), last.Health.String())
	assert.Empty(t, f.requests.take())

	f.setStatus("persistentvolumeclaims", "data", `{"status":{"phase":"Lost"}}`)
	f.awaitNotice()
	seen, _ := f.Observe(f.owner)
	for ; seen.Health.Healthy(); seen, _ = f.Observe(f.owner) {
		f.awaitNotice()
	}
	assert.Equal(t, "1 of 2 objects is not healthy: PersistentVolumeClaim "+f.namespace+"/data is InProgress: PVC is not Bound. phase: Lost", seen.Health.String())
}

// One who asks for health later gets it, and nothing is lost on the way.
func TestHealth_askedForLater(t *testing.T) {
	f := newFixture(t)
	objects := []manifest.Object{parse(t, deploymentText), configMap(t, "settings", "one")}
	first := f.mustApply(nil, objects...)
	assert.Equal(t, health.Summary{}, first.Health)
	f.setStatus("deployments", "web", `{"status":{"observedGeneration":1,"conditions":[{"type":"Available","status":"True"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}}`)
	f.requests.take()

	request := f.request(first.Inventory, objects...)
	request.Health = true
	f.until(request, func(r apply.Result) bool { return r.Health.Total == 2 && r.Health.Healthy() })
	assert.Empty(t, f.requests.take(), "watching more is no reason to apply")
	f.edit("deployments", "web", `{"spec":{"replicas":2}}`)
	result := f.until(request, func(r apply.Result) bool { return len(r.Changes) > 0 })
	assert.Equal(t, []apply.Change{{ID: first.Inventory[0], Action: apply.Corrected}}, result.Changes)
}

// Health of an object that is not there, or not ours, is no guess.
func TestHealth_ofWhatIsNotOurs(t *testing.T) {
	f := newFixture(t)
	f.create("configmaps", configMap(t, "foreign", "one"))
	request := f.request(nil, configMap(t, "foreign", "two"), parse(t, "{apiVersion: example.com/v1, kind: Nothing, metadata: {name: nothing}}"))
	request.Health = true
	result := f.Apply(t.Context(), request)
	assert.Equal(t, map[health.Status]int{health.NotFound: 2}, result.Health.Counts)
}

func TestHealth_jobMustComplete(t *testing.T) {
	f := newFixture(t)
	request := f.request(nil, parse(t, jobText))
	request.Health = true
	requireClean(t, f.Apply(t.Context(), request))
	seen, _ := f.Observe(f.owner)
	assert.False(t, seen.Health.Healthy())
}
