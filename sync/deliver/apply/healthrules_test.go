package apply_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/health"
	"waybill.dev/waybill/sync/health/rules"
	"waybill.dev/waybill/sync/manifest"
)

// rules is a ConfigMap with a rule by which claims of a label are healthy.
func (f *fixture) rules(label string) manifest.Object {
	return parse(f.t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+v1alpha1.HealthRulesConfigMap+"}, data: {README: not a rule, claims.yaml: "+
		"\"- {group: '', kinds: [PersistentVolumeClaim], current: \\\"status.phase == 'Bound' || '"+label+"' in metadata.labels\\\"}\"}}")
}

// told waits until an owner's objects are healthy, or are not any more.
func (f *fixture) told(healthy bool) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		seen, known := f.Observe(f.owner)
		return known && seen.Health.Healthy() == healthy
	}, patience, often)
	f.awaitNotice()
}

// recorded keeps the notes of events.
type recorded struct{ notes chan string }

func (r recorded) Eventf(regarding, _ runtime.Object, _, reason, _, note string, args ...any) {
	r.notes <- regarding.(metav1.Object).GetName() + " " + reason + ": " + args[0].(string)
}

var _ events.EventRecorder = recorded{}

// Rules of an operator hold at once, for objects that do not change, and until they are taken back.
func TestHealthRules_areFollowed(t *testing.T) {
	f := newFixture(t)
	t.Cleanup(func() { health.Use(nil) })
	request := f.request(nil, parse(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, labels: {odd: x, also: x}}, spec: "+
		"{accessModes: [ReadWriteOnce], storageClassName: none, resources: {requests: {storage: 1Gi}}}}"))
	request.Health = true
	first := f.Apply(t.Context(), request)
	requireClean(t, first)
	assert.False(t, first.Health.Healthy())
	request.Inventory = first.Inventory

	f.create("configmaps", f.rules("odd"))
	events := recorded{make(chan string, 10)}
	began := time.Now()
	healthrules.Follow(t.Context(), f.admin.dynamic, f.namespace, events)
	assert.Less(t, time.Since(began), 9*time.Second)
	f.told(true)
	f.requests.take()
	assert.Empty(t, f.Apply(t.Context(), request).Changes)
	assert.Empty(t, f.requests.take(), "which is no reason to apply")

	f.edit("configmaps", v1alpha1.HealthRulesConfigMap, `{"data":{"claims.yaml":"- {group: example.com, kinds: [Thing], current: 'nonsense('}"}}`)
	f.told(false)
	assert.Contains(t, <-events.notes, v1alpha1.HealthRulesConfigMap+` InvalidHealthRules: claims.yaml: rule 1 (Thing of group "example.com"): current: `)
	f.edit("configmaps", v1alpha1.HealthRulesConfigMap, `{"data":{"claims.yaml":`+quoted(f.rules("also"))+`}}`)
	f.told(true)
	f.delete("configmaps", v1alpha1.HealthRulesConfigMap)
	f.told(false)
	assert.Empty(t, events.notes)
	requireClean(t, apply.Result{Problems: f.Apply(t.Context(), request).Problems})
}

// quoted returns the rule of a ConfigMap as JSON.
func quoted(rules manifest.Object) string {
	text := rules.Object["data"].(map[string]any)["claims.yaml"].(string)
	encoded, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(encoded)
}
