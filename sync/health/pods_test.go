package health_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/sync/health"
)

func podWith(status string) string {
	return "{apiVersion: v1, kind: Pod, metadata: {name: web-1}, status: " + status + "}"
}

func TestOf_podsSayWhyTheyDoNotRun(t *testing.T) {
	cases := map[string]struct {
		reason, status string
		want           health.Status
		message        string
	}{
		"Pulling": {
			"it has just begun",
			"{phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: ContainerCreating}}}]}",
			health.InProgress, "Pod is in the Pending phase",
		},
		"ErrImagePull": {
			"kubelet tries again and again, and the message stays",
			"{phase: Pending, containerStatuses: [{name: web, image: 'nginx:nope', state: {waiting: {reason: ErrImagePull, message: 'rpc error'}}}]}",
			health.InProgress, `container "web": ImagePullBackOff: image "nginx:nope"`,
		},
		"ImagePullBackOff": {
			"kubelet waits before it tries again",
			"{phase: Pending, containerStatuses: [{name: web, image: 'nginx:nope', state: {waiting: {reason: ImagePullBackOff}}}]}",
			health.InProgress, `container "web": ImagePullBackOff: image "nginx:nope"`,
		},
		"CrashLoopBackOff": {
			"the message of kubelet counts the seconds, and is left out",
			`{phase: Running, containerStatuses: [{name: web, state: {waiting: {reason: CrashLoopBackOff, message: back-off 10s}},
				lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]}`,
			health.Failed, `container "web": CrashLoopBackOff: exit code 137 (OOMKilled)`,
		},
		"Restarted": {
			"it runs again, and is not ready yet",
			"{phase: Running, containerStatuses: [{name: ok, ready: true}, {name: web, state: {running: {}}, lastState: {terminated: {exitCode: 1}}}]}",
			health.InProgress, `container "web": restarted after exit code 1 (Error)`,
		},
		"InitContainer": {
			"nothing else starts before it",
			`{phase: Pending, initContainerStatuses: [{name: done, state: {terminated: {exitCode: 0}}}, {name: migrate, state: {terminated: {exitCode: 2, reason: Error}}}],
				containerStatuses: [{name: web, state: {waiting: {reason: PodInitializing}}}]}`,
			health.InProgress, `container "migrate": exit code 2 (Error)`,
		},
		"Config": {
			"what else kubelet says is passed on",
			`{phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: CreateContainerConfigError, message: 'secret "db" not found'}}}]}`,
			health.InProgress, `container "web": CreateContainerConfigError: secret "db" not found`,
		},
		"Unschedulable": {
			"the scheduler says why",
			`{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: '0/3 nodes are available: 3 Insufficient cpu.'}]}`,
			health.Failed, "Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.",
		},
		"Ready": {
			"it is well again, whatever it was before",
			`{phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: web, ready: true, lastState: {terminated: {exitCode: 1}}}]}`,
			health.Current, "Pod is Ready",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status, message := health.Of(parse(t, podWith(tc.status)))
			assert.Equal(t, tc.want, status, tc.reason)
			assert.Equal(t, tc.message, message, tc.reason)
		})
	}
}

// The users who run Pods write what they say.
func TestPodProblem_isShort(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for _, status := range []string{
		"{conditions: [{type: PodScheduled, status: 'False', reason: " + long + ", message: " + long + "}]}",
		"{containerStatuses: [{name: " + long + ", image: " + long + ", state: {waiting: {reason: ErrImagePull}}}]}",
		"{containerStatuses: [{name: " + long + ", state: {waiting: {reason: " + long + ", message: \"a\\n\\n" + long + "\"}}}]}",
		"{containerStatuses: [{name: " + long + ", state: {terminated: {exitCode: 1, reason: " + long + "}}}]}",
	} {
		problem := health.PodProblem(parse(t, podWith(status)))
		assert.NotEmpty(t, problem)
		assert.Less(t, len(problem), 400)
		assert.NotContains(t, problem, "\n")
	}
}

func TestPodProblems_namesTheFirst(t *testing.T) {
	pod := func(name, reason string) unstructured.Unstructured {
		return *parse(t, "{apiVersion: v1, kind: Pod, metadata: {name: "+name+"}, status: {containerStatuses: [{name: web, state: {waiting: {reason: "+reason+"}}}]}}")
	}
	assert.Equal(t, `Pod web-1: container "web": CrashLoopBackOff (and 1 more)`, health.PodProblems([]unstructured.Unstructured{
		pod("web-2", "CrashLoopBackOff"), pod("web-0", "ContainerCreating"), pod("web-1", "CrashLoopBackOff"),
	}))
	assert.Empty(t, health.PodProblems(nil))
}

func TestPodsOf(t *testing.T) {
	for text, want := range map[string]string{
		"{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {app: web}}}}":                                    "app=web",
		"{apiVersion: apps/v1, kind: DaemonSet, spec: {selector: {matchExpressions: [{key: app, operator: In, values: [web]}]}}}": "app in (web)",
		"{apiVersion: v1, kind: ReplicationController, spec: {selector: {app: web}}}":                                             "app=web",
		"{apiVersion: batch/v1, kind: Job, spec: {}}":                                                                             "",
		"{apiVersion: apps/v1, kind: Deployment, spec: {selector: {}}}":                                                           "", // which would be every Pod
		"{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {}}}}":                                            "",
		"{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: 7}}}":                                             "",
		"{apiVersion: example.com/v1, kind: Deployment, spec: {selector: {matchLabels: {app: web}}}}":                             "",
		"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {selector: {matchLabels: {app: web}}}}":         "",
	} {
		got := ""
		if selector := health.PodsOf(parse(t, text)); selector != nil {
			got = selector.String()
		}
		assert.Equal(t, want, got, text)
	}
}
