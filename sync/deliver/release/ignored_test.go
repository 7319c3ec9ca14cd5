package release_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/ignore"
	"waybill.dev/waybill/sync/deliver/release"
)

const (
	scaled = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: one, annotations: {checksum: "1"}}
spec:
  replicas: 2
  minReadySeconds: 3
  selector: {matchLabels: {app: one}}
  template:
    metadata: {labels: {app: one}, annotations: {restarted: "1"}}
    spec: {containers: [{name: app, image: "app:1", args: [a]}]}
`
	// rescaled wants other replicas, and of the rest nothing that others have set.
	rescaled = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: one}
spec:
  replicas: 3
  selector: {matchLabels: {app: one}}
  template:
    metadata: {labels: {app: one}}
    spec: {containers: [{name: new, image: "new:1"}, {name: app, image: "app:2", args: [b]}]}
`
)

// What others have set in ignored fields is no drift, and stays through corrections and upgrades, also
// where the chart does not name it any more.
func TestIgnored_staysAsOthersSetIt(t *testing.T) {
	w := newWorld(t)
	rules, err := ignore.Compile([]v1alpha1.IgnoredDifference{{JSONPointers: []string{
		"/spec/replicas", "/spec/minReadySeconds", "/metadata/annotations/checksum", "/spec/template/metadata/annotations/restarted",
		"/spec/template/spec/containers/0/image", "/spec/template/spec/containers/1/image",
	}}})
	require.NoError(t, err)
	ignoring := func(text string) release.Desired {
		d := w.template(text)
		d.Ignored = rules
		return d
	}
	w.ensure(ignoring(scaled))
	deployments := w.client.AppsV1().Deployments(w.namespace)
	_, err = deployments.Patch(t.Context(), "one", types.StrategicMergePatchType, []byte(`{"metadata":{"annotations":{"checksum":"9"}},"spec":{"replicas":7,
		"minReadySeconds":8,"template":{"metadata":{"annotations":{"restarted":"9"}},"spec":{"containers":[{"name":"injected","image":"sidecar"},{"name":"app","image":"app:9","args":["theirs"]}]}}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	id := w.identity("one")
	id.Ignored = rules
	drift, err := w.engine.Correct(t.Context(), w.target, id, nil)
	require.NoError(t, err)
	require.Len(t, drift.Objects, 1)
	assert.NotContains(t, drift.Objects[0].String(), "replicas")
	assert.NotContains(t, drift.Objects[0].String(), "image")
	again, err := w.engine.Detect(t.Context(), w.target, id, nil)
	require.NoError(t, err)
	assert.Empty(t, again.Objects)

	w.ensure(ignoring(rescaled))
	live, err := deployments.Get(t.Context(), "one", metav1.GetOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 7, *live.Spec.Replicas)
	assert.EqualValues(t, 8, live.Spec.MinReadySeconds, "what the chart has left out is not removed")
	assert.Equal(t, "9", live.Annotations["checksum"])
	assert.Equal(t, "9", live.Spec.Template.Annotations["restarted"], "nor does it go with what held it")
	images, args := map[string]string{}, map[string][]string{}
	for _, c := range live.Spec.Template.Spec.Containers {
		images[c.Name], args[c.Name] = c.Image, c.Args
	}
	assert.Equal(t, map[string]string{"injected": "sidecar", "app": "app:9", "new": "new:1"}, images)
	assert.Equal(t, []string{"b"}, args["app"], "the rest is the chart's to set")

	plain, err := w.engine.Detect(t.Context(), w.target, w.identity("one"), nil)
	require.NoError(t, err)
	assert.Contains(t, w.drift(plain)[0], "spec.replicas", "it is drift for who does not ignore it")
}
