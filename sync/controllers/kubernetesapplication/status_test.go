package kubernetesapplication_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// W12, W13, W15, W23
func TestStatus_countsWhatIsSubmitted(t *testing.T) {
	w := newWorld(t)
	w.addCluster("oslo", nil)
	app := w.submit(application("web", configMap(t, "one"), configMap(t, "two"), configMap(t, "three")))
	w.awaitState(app, v1alpha1.StateScheduled)
	assert.EqualValues(t, 3, app.Status.DesiredResources)
	assert.EqualValues(t, 0, app.Status.SubmittedResources)

	w.say("one", "no room left")
	w.awaitState(app, v1alpha1.StateFailed)
	w.say("two", "")
	w.awaitState(app, v1alpha1.StatePartiallySubmitted)
	assert.EqualValues(t, 1, app.Status.SubmittedResources)
	w.say("three", "")
	hub.Await(w.World, app, "2 are submitted", func(app *v1alpha1.KubernetesApplication) bool { return app.Status.SubmittedResources == 2 })
	w.say("one", "")
	hub.AwaitReady(w.World, app)
	assert.Equal(t, v1alpha1.StateSubmitted, app.Status.State)
	assert.EqualValues(t, 3, app.Status.SubmittedResources)
	assert.True(t, conditions.IsTrue(app, v1alpha1.SubmittedCondition))

	hub.Change(w.World, app, func(app *v1alpha1.KubernetesApplication) {
		app.Spec.ResourceTemplates[0] = template(t, "one", "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {key: other}}")
	})
	w.awaitState(app, v1alpha1.StatePartiallySubmitted)
	assert.EqualValues(t, 2, app.Status.SubmittedResources, "what was submitted is not what is templated now")
}

// What a cluster has refused stands in the application, word for word.
func TestStatus_quotesRefusals(t *testing.T) {
	const refusal = `admission webhook "policy.example.com" denied the request: images come from "registry.example.com" only`
	w := newWorld(t)
	w.addCluster("oslo", nil)
	app := w.submit(application("web", configMap(t, "one"), configMap(t, "two")))
	w.awaitState(app, v1alpha1.StateScheduled)
	w.say("one", "")
	w.awaitState(app, v1alpha1.StatePartiallySubmitted)

	w.say("two", refusal)
	message := hub.AwaitReason(w.World, app, v1alpha1.ResourcesFailedReason)
	assert.Equal(t, "resource two: "+refusal, message)
	assert.Equal(t, message, conditions.GetMessage(app, v1alpha1.SubmittedCondition))
}

// A message names five resources, in the order of the templates, and counts the rest.
func TestStatus_boundsItsMessage(t *testing.T) {
	w := newWorld(t)
	w.addCluster("oslo", nil)
	var templates []v1alpha1.ResourceTemplate
	names := []string{"g", "f", "e", "d", "c", "b", "a"}
	for _, name := range names {
		templates = append(templates, configMap(t, name))
	}
	app := w.submit(application("web", templates...))
	for _, name := range names {
		w.say(name, strings.Repeat("x", 10_000))
	}
	w.awaitMessage(app, "; and 2 more")
	message := conditions.GetMessage(app, v1alpha1.ReadyCondition)
	assert.True(t, strings.HasPrefix(message, "resource g: xxx"), message[:40])
	assert.Contains(t, message, "resource c: xxx")
	assert.NotContains(t, message, "resource b")
	assert.Less(t, len(message), 32768)
}

// W14, W22: what kubectl prints.
func TestStatus_printsAsTheDocumentDoes(t *testing.T) {
	w := newWorld(t)
	w.addCluster("wordpress-demo-cluster", nil)
	deployment := template(t, "wordpress-demo-deployment", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: wordpress, namespace: wordpress}}")
	namespace := template(t, "wordpress-demo-namespace", "{apiVersion: v1, kind: Namespace, metadata: {name: wordpress}}")
	service := template(t, "wordpress-demo-service", "{apiVersion: v1, kind: Service, metadata: {name: wordpress, namespace: wordpress}}")
	app := w.submit(application("wordpress-demo", deployment, namespace, service))
	w.say("wordpress-demo-deployment", "")
	w.say("wordpress-demo-namespace", "")
	w.say("wordpress-demo-service", "refused")
	hub.AwaitReason(w.World, app, v1alpha1.ResourcesFailedReason)
	w.awaitState(app, v1alpha1.StatePartiallySubmitted)

	assert.Equal(t, `NAME CLUSTER STATUS DESIRED SUBMITTED
wordpress-demo wordpress-demo-cluster PartiallySubmitted 3 2`, w.kubectl("get", "kubernetesapplication", "wordpress-demo"))
	assert.Equal(t, `NAME TEMPLATE-KIND TEMPLATE-NAME CLUSTER STATUS
wordpress-demo-deployment Deployment wordpress wordpress-demo-cluster Submitted
wordpress-demo-namespace Namespace wordpress wordpress-demo-cluster Submitted
wordpress-demo-service Service wordpress wordpress-demo-cluster Failed`, w.kubectl("get", "kubernetesapplicationresource"))
	assert.Contains(t, w.kubectl("get", "waybill"), "kubernetesapplication.apps.waybill.dev/wordpress-demo", "C1")
}

// kubectl returns what it prints, with single spaces.
func (w *world) kubectl(args ...string) string {
	w.T.Helper()
	out, err := w.Cluster.Kubectl(w.T.Context(), "", append([]string{"-n", w.Namespace}, args...)...)
	require.NoError(w.T, err, "%s", out)
	var lines []string
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}
