package release_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	helmrelease "helm.sh/helm/v3/pkg/release"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/deliver/release"
)

const (
	// plain and rich are the same objects. rich sets more in them.
	plain = `
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data: {a: "1"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: one}
spec:
  selector: {matchLabels: {app: one}}
  template:
    metadata: {labels: {app: one}}
    spec:
      containers: [{name: web, image: example.com/web:1.0.0, ports: [{containerPort: 80}], env: [{name: A, value: a}]}]
`
	rich = `
apiVersion: v1
kind: ConfigMap
metadata: {name: one, labels: {rich: "yes"}}
data: {a: "2", b: "2"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: one}
spec:
  selector: {matchLabels: {app: one}}
  template:
    metadata: {labels: {app: one}}
    spec:
      hostNetwork: true
      containers:
        - {name: web, image: example.com/web:1.0.0, workingDir: /tmp, ports: [{containerPort: 80}, {containerPort: 81}], env: [{name: A, value: a}, {name: B, value: b}]}
        - {name: more, image: example.com/more:1.0.0}
`
)

// broken is written last, and refused.
const broken = "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: broken}\nspec: {}\n"

// helmUpgrade is `helm upgrade`, to a chart of that template.
func (w *world) helmUpgrade(text string) error {
	w.Helper()
	run := action.NewUpgrade(w.helm())
	run.Namespace = w.namespace
	_, err := run.Run("one", w.template(text).Chart, values{})
	return err
}

// setByOthers adds fields to the objects of plain, as controllers and users of the cluster do.
func (w *world) setByOthers() {
	w.Helper()
	options := metav1.PatchOptions{FieldManager: "others"}
	_, err := w.client.CoreV1().ConfigMaps(w.namespace).Patch(w.Context(), "one", types.MergePatchType, []byte(`{"data":{"theirs":"kept"}}`), options)
	require.NoError(w, err)
	_, err = w.client.AppsV1().Deployments(w.namespace).Patch(w.Context(), "one", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"THEIRS","value":"kept"}]}]}}}}`), options)
	require.NoError(w, err)
}

func (w *world) deployment() *appsv1.Deployment {
	w.Helper()
	found, err := w.client.AppsV1().Deployments(w.namespace).Get(w.Context(), "one", metav1.GetOptions{})
	require.NoError(w, err)
	return found
}

// assertPlain checks that the objects are as plain says, with what others have set.
func (w *world) assertPlain() {
	w.Helper()
	config, err := w.configMap("one")
	require.NoError(w, err)
	assert.Equal(w, values{"a": "1", "theirs": "kept"}, toValues(config.Data))
	assert.NotContains(w, config.Labels, "rich")
	pod := w.deployment().Spec.Template.Spec
	assert.False(w, pod.HostNetwork)
	if assert.Len(w, pod.Containers, 1) {
		var env []string
		for _, e := range pod.Containers[0].Env {
			env = append(env, e.Name)
		}
		assert.ElementsMatch(w, []string{"A", "THEIRS"}, env)
		assert.Empty(w, pod.Containers[0].WorkingDir)
		assert.Len(w, pod.Containers[0].Ports, 1)
	}
}

func toValues(data map[string]string) values {
	found := values{}
	for key, value := range data {
		found[key] = value
	}
	return found
}

// K3, K47: what only a revision made by hand has set goes with the next one of ours, though its record is not executed. What
// others have set stays.
func TestEnsure_removesWhatARevisionMadeByHandHasSet(t *testing.T) {
	cases := map[string]struct {
		reason string
		byHand func(*world)
		want   []int
	}{
		"Rollback": {"to a revision that is known", func(w *world) { w.helmRollback("one") }, []int{3}},
		"Upgrade":  {"to what Waybill has never seen", func(w *world) { require.NoError(w, w.helmUpgrade(rich)) }, []int{3}},
		"Twice": {"the first of them too", func(w *world) {
			require.NoError(w, w.helmUpgrade(rich))
			require.NoError(w, w.helmUpgrade(rich+"\n# again\n"))
		}, []int{3, 4}},
		"Failed": {"it has set some before it failed", func(w *world) {
			require.Error(w, w.helmUpgrade(rich+broken))
		}, []int{3}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ensure(w.template(rich))
			d := w.template(plain)
			w.ensure(d)
			w.setByOthers()
			w.assertPlain()
			tc.byHand(w)
			require.True(t, w.deployment().Spec.Template.Spec.HostNetwork, tc.reason)

			previews, err := w.engine.Preview(t.Context(), w.target, w.identity("one"), w.rendered(d), release.Provided{})
			require.NoError(t, err)
			for _, p := range previews {
				if p.ID.Kind == "Deployment" {
					assert.Equal(t, "example.com/web:1.0.0", imagesOf(t, p.After), "a preview shows it")
				}
			}
			result := w.ensure(d)
			assert.Equal(t, release.ActionUpgrade, result.Action)
			assert.Equal(t, tc.want, result.Altered)
			w.assertPlain()
			again := w.ensure(d)
			assert.Equal(t, release.ActionNone, again.Action)
			assert.Empty(t, again.Altered)
		})
	}
}

// A revision that Waybill made itself, and did not note because it was killed, is none that it knows.
func TestEnsure_removesWhatARevisionThatWasNotNotedHasSet(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.template(plain))
	w.setByOthers()
	before := w.known["one"]
	w.ensure(w.template(rich))
	w.known["one"] = before
	d := w.template(plain)
	d.ChartDigest = "another"
	w.ensure(d)
	w.assertPlain()
}

// What an upgrade had set when it failed goes with the next one.
func TestEnsure_removesWhatAFailedUpgradeHasSet(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.template(plain))
	w.setByOthers()
	_, err := w.try(t.Context(), w.template(rich+broken))
	require.Error(t, err)
	require.True(t, w.deployment().Spec.Template.Spec.HostNetwork)
	d := w.template(plain)
	d.ChartDigest = "another"
	result := w.ensure(d)
	assert.Empty(t, result.Altered)
	w.assertPlain()
}

// C34: an object that only a revision made by hand has brought carries no mark of ours; it stays, and is named.
func TestEnsure_keepsObjectsThatARevisionMadeByHandHasBrought(t *testing.T) {
	w := newWorld(t)
	d := w.template(plain)
	w.ensure(d)
	require.NoError(t, w.helmUpgrade(plain+"---\n"+configMap("theirs", "a")))
	result := w.ensure(d)
	require.Len(t, result.Kept, 1)
	assert.Equal(t, "theirs", result.Kept[0].ID.Name)
	_, err := w.configMap("theirs")
	assert.False(t, apierrors.IsNotFound(err))
}

// C35: an empty field of a chart is Helm's, and what others have set in it since is not: no record gives that away.
func TestEnsure_leavesWhatOthersHaveSetInAnEmptyField(t *testing.T) {
	w := newWorld(t)
	empty := strings.Replace(plain, "name: web,", "name: web, resources: {},", 1)
	w.ensure(w.template(empty))
	limit := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","resources":{"limits":{"memory":"64Mi"}}}]}}}}`)
	_, err := w.client.AppsV1().Deployments(w.namespace).Patch(t.Context(), "one", types.StrategicMergePatchType, limit, metav1.PatchOptions{FieldManager: "others"})
	require.NoError(t, err)
	w.alter("one", 1, func(r *helmrelease.Release) {
		r.Manifest = strings.Replace(r.Manifest, "resources: {}", "resources: {limits: {memory: 64Mi}}", 1)
		require.Contains(t, r.Manifest, "64Mi")
	})
	result := w.ensure(w.template(empty))
	assert.Equal(t, []int{1}, result.Altered)
	assert.Equal(t, "64Mi", w.deployment().Spec.Template.Spec.Containers[0].Resources.Limits.Memory().String())
}
