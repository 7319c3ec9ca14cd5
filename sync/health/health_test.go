package health_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/sync/health"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	json, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	require.NoError(t, object.UnmarshalJSON(json))
	return object
}

// C43
func TestOf(t *testing.T) {
	cases := map[string]struct {
		reason  string
		object  string
		want    health.Status
		message string
	}{
		"ConfigMap": {
			reason: "existence is health",
			object: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
			want:   health.Current, message: "Resource is always ready",
		},
		"Deleting": {
			reason: "an object on its way out is Terminating, whatever else it says",
			object: `{apiVersion: batch/v1, kind: Job, metadata: {name: a, deletionTimestamp: "2026-01-01T00:00:00Z"},
				status: {conditions: [{type: Complete, status: "True"}]}}`,
			want: health.Terminating, message: "Resource scheduled for deletion",
		},
		"DeploymentRollingOut": {
			reason: "fewer replicas than wanted",
			object: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 1}, spec: {replicas: 2}, status: {observedGeneration: 1}}",
			want:   health.InProgress, message: "Replicas: 0/2",
		},
		"DeploymentNotObserved": {
			reason: "a status of the generation before says nothing",
			object: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 2}, status: {observedGeneration: 1}}",
			want:   health.InProgress, message: "Deployment generation is 2, but latest observed generation is 1",
		},
		"LoadBalancer": {
			reason: "not every cluster has somebody who gives out addresses",
			object: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, clusterIP: 10.0.0.1}, status: {loadBalancer: {}}}",
			want:   health.Current, message: "Service is ready",
		},
		"ApplicationAlone": {
			reason: "the controller of Applications need not run (C43)",
			object: "{apiVersion: apps.waybill.dev/v1alpha1, kind: Application, metadata: {name: a, generation: 1}, status: {observedGeneration: -1}}",
			want:   health.Current, message: "no controller reports on its components",
		},
		"ApplicationNotObserved": {
			reason: "a status of the generation before says nothing",
			object: `{apiVersion: apps.waybill.dev/v1alpha1, kind: Application, metadata: {name: a, generation: 2},
				status: {observedGeneration: 1, conditions: [{type: ComponentsReady, status: "True"}]}}`,
			want: health.InProgress, message: "its components are being checked",
		},
		"ApplicationNotReady": {
			reason: "where its controller runs, its word counts",
			object: `{apiVersion: apps.waybill.dev/v1alpha1, kind: Application, metadata: {name: a, generation: 1},
				status: {observedGeneration: 1, conditions: [{type: ComponentsReady, status: "False", message: 1 of 2}]}}`,
			want: health.InProgress, message: "its components are not ready: 1 of 2",
		},
		"JobRunning": {
			reason: "a job that runs has not done its work",
			object: `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {startTime: "2026-01-01T00:00:00Z", active: 1}}`,
			want:   health.InProgress, message: "Job has not completed",
		},
		"JobComplete": {
			reason: "done",
			object: `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {conditions: [{type: Complete, status: "True"}]}}`,
			want:   health.Current, message: "Job completed",
		},
		"JobFailed": {
			reason: "the reason of the Job controller is passed on",
			object: `{apiVersion: batch/v1, kind: Job, metadata: {name: a},
				status: {conditions: [{type: Failed, status: "True", message: "Job has reached the specified backoff limit"}]}}`,
			want: health.Failed, message: "Job failed: Job has reached the specified backoff limit",
		},
		"JobSuspended": {
			reason: "what the job is there for has not been done",
			object: "{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {suspend: true}}",
			want:   health.InProgress, message: "Job is suspended: it runs when spec.suspend is false",
		},
		"JobSuspendedAfterItCompleted": {
			reason: "it has done its work",
			object: `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {suspend: true},
				status: {conditions: [{type: Complete, status: "True"}]}}`,
			want: health.Current, message: "Job completed",
		},
		"APIServiceUnavailable": {
			reason: "its condition is not one that kstatus knows",
			object: `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a},
				status: {conditions: [{type: Available, status: "False", reason: MissingEndpoints}]}}`,
			want: health.InProgress, message: "API is not available: MissingEndpoints",
		},
		"VolumeFailed": {
			reason: "a volume that cannot be reclaimed needs somebody",
			object: "{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, status: {phase: Failed, message: no plugin}}",
			want:   health.Failed, message: "PersistentVolume failed: no plugin",
		},
		"CustomStalled": {
			reason: "kstatus conditions count on any kind",
			object: `{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, status: {conditions: [{type: Stalled, status: "True", message: bad spec}]}}`,
			want:   health.Failed, message: "bad spec",
		},
		"CustomNotReady": {
			reason: "a Ready condition counts on any kind",
			object: `{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, status: {conditions: [{type: Ready, status: "False", message: starting}]}}`,
			want:   health.InProgress, message: "starting",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status, message := health.Of(parse(t, tc.object))
			assert.Equal(t, tc.want, status, tc.reason)
			assert.Equal(t, tc.message, message, tc.reason)
		})
	}
}

func TestOf_oddObjects(t *testing.T) {
	status, _ := health.Of(nil)
	assert.Equal(t, health.NotFound, status)

	for _, text := range []string{
		"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: nonsense}",
		"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {conditions: [1, {}]}}",
		"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a}, status: {conditions: {}}}",
	} {
		status, _ := health.Of(parse(t, text))
		assert.Equal(t, health.InProgress, status, "a status that makes no sense yet is no success: %s", text)
	}

	status, message := health.Of(parse(t, "{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, status: {conditions: 7}}"))
	assert.Equal(t, health.Unknown, status)
	assert.NotEmpty(t, message)
}

// C39
func TestHasStatus(t *testing.T) {
	assert.False(t, health.HasStatus(schema.GroupKind{Kind: "Secret"}), "Secrets are never read in full")
	assert.False(t, health.HasStatus(schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"}))
	assert.True(t, health.HasStatus(schema.GroupKind{Group: "apps", Kind: "Deployment"}))
	assert.True(t, health.HasStatus(schema.GroupKind{Group: "example.com", Kind: "Secret"}), "the group counts")
}

// W19, W20
func TestReportsStatus(t *testing.T) {
	assert.False(t, health.ReportsStatus(schema.GroupKind{Kind: "Secret"}), "Secrets are never read in full")
	assert.False(t, health.ReportsStatus(schema.GroupKind{Kind: "ConfigMap"}))
	assert.True(t, health.ReportsStatus(schema.GroupKind{Kind: "Service"}), "a status that says nothing of health is one")
	assert.True(t, health.ReportsStatus(schema.GroupKind{Group: "apps", Kind: "Deployment"}))
	assert.True(t, health.ReportsStatus(schema.GroupKind{Group: "example.com", Kind: "Thing"}), "kinds that are not known may have one")
}

func TestOfMetadata(t *testing.T) {
	status, _ := health.OfMetadata(false)
	assert.Equal(t, health.Current, status)
	status, _ = health.OfMetadata(true)
	assert.Equal(t, health.Terminating, status)
}
