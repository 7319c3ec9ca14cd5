package release_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/manifest"
)

func (w *world) drift(drift release.Drift) []string {
	var found []string
	for _, o := range drift.Objects {
		found = append(found, o.String())
	}
	return found
}

// K3, C53
func TestCorrect_putsObjectsRight(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", nil))
	config := manifest.ID{Version: "v1", Kind: "ConfigMap", Namespace: w.namespace, Name: "web"}
	deployment := manifest.ID{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: w.namespace, Name: "web"}
	require.NoError(t, w.client.CoreV1().ConfigMaps(w.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	edit := []byte(`{"metadata":{"labels":{"apps.waybill.dev/release":null,"app.kubernetes.io/managed-by":null,"mine":"too"}},"spec":{"replicas":7}}`)
	_, err := w.client.AppsV1().Deployments(w.namespace).Patch(t.Context(), "web", types.MergePatchType, edit, metav1.PatchOptions{})
	require.NoError(t, err)
	want := []string{
		"ConfigMap " + w.namespace + "/web was missing",
		"Deployment.apps " + w.namespace + `/web differed in metadata.labels["app.kubernetes.io/managed-by"], metadata.labels["apps.waybill.dev/release"], spec.replicas`,
	}

	detected, err := w.engine.Detect(t.Context(), w.target, w.identity("web"), nil)
	require.NoError(t, err)
	assert.Equal(t, want, w.drift(detected))
	_, err = w.configMap("web")
	require.Error(t, err, "detecting changes nothing")

	var corrected release.Drift
	requests := w.calls(func() {
		corrected, err = w.engine.Correct(t.Context(), w.target, w.identity("web"), []manifest.ID{config, deployment})
	})
	require.NoError(t, err)
	assert.Equal(t, want, w.drift(corrected))
	assert.LessOrEqual(t, len(requests), 6)
	live, err := w.client.AppsV1().Deployments(w.namespace).Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 1, *live.Spec.Replicas)
	assert.Equal(t, "too", live.Labels["mine"], "what others add stays")
	made, err := w.configMap("web")
	require.NoError(t, err)
	assert.Equal(t, "web", made.Annotations["meta.helm.sh/release-name"])
	assert.Equal(t, []string{"1 deployed"}, w.revisions("web"), "no new revision")

	again, err := w.engine.Correct(t.Context(), w.target, w.identity("web"), nil)
	require.NoError(t, err)
	assert.Empty(t, again.Objects)
}

// meddling lets others write before each patch of a Deployment.
type meddling struct {
	next  http.RoundTripper
	write func()
}

// RoundTrip implements http.RoundTripper.
func (m *meddling) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodPatch && strings.Contains(request.URL.Path, "/deployments/") {
		m.write()
	}
	return m.next.RoundTrip(request)
}

// C53: what others change while an object is looked at is no drift.
func TestCorrect_namesOnlyWhatItPatches(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", nil))
	deployments := w.client.AppsV1().Deployments(w.namespace)
	patch := func(text string) {
		_, err := deployments.Patch(t.Context(), "web", types.MergePatchType, []byte(text), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	patch(`{"spec":{"replicas":7}}`)
	writes := 0
	w.target.config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &meddling{next: next, write: func() {
			writes++
			patch(fmt.Sprintf(`{"metadata":{"annotations":{"theirs":"%d"}},"spec":{"paused":%t}}`, writes, writes%2 == 1))
		}}
	})
	want := []string{"Deployment.apps " + w.namespace + "/web differed in spec.replicas"}
	detected, err := w.engine.Detect(t.Context(), w.target, w.identity("web"), nil)
	require.NoError(t, err)
	assert.Equal(t, want, w.drift(detected))
	corrected, err := w.engine.Correct(t.Context(), w.target, w.identity("web"), nil)
	require.NoError(t, err)
	assert.Equal(t, want, w.drift(corrected))
	assert.Equal(t, 2, writes)
}

func TestCorrect_looksAtDirtyObjectsOnly(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", nil))
	require.NoError(t, w.client.CoreV1().ConfigMaps(w.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	other := manifest.ID{Version: "v1", Kind: "Service", Namespace: w.namespace, Name: "web"}
	drift, err := w.engine.Correct(t.Context(), w.target, w.identity("web"), []manifest.ID{other})
	require.NoError(t, err)
	assert.Empty(t, drift.Objects)
	_, err = w.configMap("web")
	require.Error(t, err)
}

// C53: a release whose last action failed is not gone; one that was uninstalled is, though it has a history.
func TestCorrect_needsADeployedRelease(t *testing.T) {
	w := newWorld(t)
	reason := func() release.Reason {
		_, err := w.engine.Correct(t.Context(), w.target, w.identity("web"), nil)
		return release.ReasonOf(err)
	}
	assert.Equal(t, release.ReasonGone, reason())
	_, err := w.try(t.Context(), w.desired("web", values{"broken": true}))
	require.Error(t, err)
	assert.Equal(t, release.ReasonNotDeployed, reason())

	w.ensure(w.desired("web", nil))
	_, err = w.try(t.Context(), w.desired("web", values{"broken": true}))
	require.Error(t, err)
	assert.Equal(t, release.ReasonNotDeployed, reason())

	byHand := action.NewUninstall(w.helm())
	byHand.KeepHistory = true
	_, err = byHand.Run("web")
	require.NoError(t, err)
	assert.Equal(t, release.ReasonGone, reason())
}

// C53, K3: while an upgrade fails, what is missing of what both revisions want is put back, and no more than that.
func TestCorrect_putsBackWhatIsMissingWhileAnUpgradeFails(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", values{"extra": true}))
	w.failing(values{"replicas": 3}, 0)
	for _, name := range []string{"web", "web-extra"} {
		require.NoError(t, w.client.CoreV1().ConfigMaps(w.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	want := []string{"ConfigMap " + w.namespace + "/web was missing"}
	detected, err := w.engine.Detect(t.Context(), w.target, w.identity("web"), nil)
	assert.Equal(t, release.ReasonNotDeployed, release.ReasonOf(err))
	assert.Equal(t, want, w.drift(detected))
	assert.False(t, w.has("web"))

	drift, err := w.engine.Correct(t.Context(), w.target, w.identity("web"), nil)
	assert.Equal(t, release.ReasonNotDeployed, release.ReasonOf(err))
	assert.Equal(t, want, w.drift(drift))
	assert.Equal(t, "hello", w.greeting())
	assert.False(t, w.has("web-extra"), "the next upgrade would delete it")
	live, err := w.client.AppsV1().Deployments(w.namespace).Get(t.Context(), "web", metav1.GetOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 3, *live.Spec.Replicas, "what is there is left to the next upgrade")
	assert.Equal(t, []string{"1 deployed", "2 failed"}, w.revisions("web"))
}

// C35: nothing is put back by a record that a user altered.
func TestCorrect_putsNothingBackByAnAlteredRecord(t *testing.T) {
	for _, revision := range []int{1, 2} {
		w := newWorld(t)
		w.ensure(w.desired("web", nil))
		w.failing(values{}, 0)
		require.NoError(t, w.client.CoreV1().ConfigMaps(w.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}))
		w.alter("web", revision, w.addBinding)
		drift, err := w.engine.Correct(t.Context(), w.target, w.identity("web"), nil)
		assert.Equal(t, release.ReasonNotDeployed, release.ReasonOf(err))
		assert.Empty(t, drift.Objects)
		assert.False(t, w.has("web"))
		w.assertNoBinding()
	}
}

// K3, C53: an edit of the key of a list item is corrected, too: merged with it, ours would be a second
// port of the same name.
func TestCorrect_keyOfAListItem(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", nil))
	services := w.client.CoreV1().Services(w.namespace)
	edit := func() {
		_, err := services.Patch(t.Context(), "web", types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/ports/0/port","value":8080}]`), metav1.PatchOptions{})
		require.NoError(t, err)
	}
	assertBack := func() {
		live, err := services.Get(t.Context(), "web", metav1.GetOptions{})
		require.NoError(t, err)
		require.Len(t, live.Spec.Ports, 1)
		assert.EqualValues(t, 80, live.Spec.Ports[0].Port)
	}
	edit()
	want := []string{"Service " + w.namespace + "/web differed in spec.ports[0].port"}
	detected, err := w.engine.Detect(t.Context(), w.target, w.identity("web"), nil)
	require.NoError(t, err)
	assert.Equal(t, want, w.drift(detected))
	corrected, err := w.engine.Correct(t.Context(), w.target, w.identity("web"), nil)
	require.NoError(t, err)
	assert.Equal(t, want, w.drift(corrected))
	assertBack()

	edit()
	w.ensure(w.desired("web", values{"greeting": "two"}))
	assertBack()
}
