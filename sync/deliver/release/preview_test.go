package release_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/helm"
)

// rendered are the objects of a release, with its marks.
func (w *world) rendered(d release.Desired) []manifest.Object {
	w.Helper()
	result, err := helm.Render(w.Context(), d.Chart, helm.Options{
		ReleaseName: d.Name, Namespace: d.Namespace, Values: d.Values,
		Stamp: helm.Stamp{
			Labels:      map[string]string{v1alpha1.OwnerHashLabel: d.OwnerHash, v1alpha1.ReleaseLabel: d.Name},
			Annotations: map[string]string{v1alpha1.OwnerAnnotation: d.Owner},
		},
	})
	require.NoError(w, err)
	return result.Objects
}

func configMap(name, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {key: " + value + "}\n---\n"
}

func valueOf(o *unstructured.Unstructured) string {
	if o == nil {
		return ""
	}
	value, _, _ := unstructured.NestedString(o.Object, "data", "key")
	return value
}

// K50: what an upgrade would do is what it does, and looking does nothing.
func TestPreview_isWhatAnUpgradeDoes(t *testing.T) {
	w := newWorld(t)
	first := w.template(configMap("same", "a") + configMap("changed", "a") + configMap("gone", "a"))
	second := w.template(configMap("same", "a") + configMap("changed", "b") + configMap("new", "b") +
		"apiVersion: example.com/v1\nkind: Unknown\nmetadata: {name: later}\n")

	previews, err := w.engine.Preview(t.Context(), w.target, first.Identity, w.rendered(first), release.Provided{})
	require.NoError(t, err)
	require.Len(t, previews, 3, "of a release that is not there everything is new")
	for _, p := range previews {
		assert.Nil(t, p.Before)
		assert.Equal(t, "a", valueOf(p.After))
	}
	list, err := w.client.CoreV1().ConfigMaps(w.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.ReleaseLabel})
	require.NoError(t, err)
	assert.Empty(t, list.Items, "nothing was written")

	w.ensure(first)
	previews, err = w.engine.Preview(t.Context(), w.target, first.Identity, w.rendered(first), release.Provided{})
	require.NoError(t, err)
	for _, p := range previews {
		assert.Equal(t, p.Before, p.After, "%s is as it is wanted", p.ID)
	}

	previews, err = w.engine.Preview(t.Context(), w.target, second.Identity, w.rendered(second), release.Provided{
		Kinds: map[schema.GroupKind]bool{{Group: "example.com", Kind: "Unknown"}: true},
	})
	require.NoError(t, err)
	got := map[string][2]string{}
	for _, p := range previews {
		got[p.ID.Name] = [2]string{valueOf(p.Before), valueOf(p.After)}
		assert.Empty(t, p.Note)
	}
	assert.Equal(t, map[string][2]string{
		"same": {"a", "a"}, "changed": {"a", "b"}, "gone": {"a", ""}, "new": {"", "b"}, "later": {"", ""},
	}, got)
}

func TestPreview_notes(t *testing.T) {
	w := newWorld(t)
	kept := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}\n---\n"
	w.ensure(w.template(kept + configMap("same", "a")))
	next := w.template(configMap("same", "a") + "apiVersion: v1\nkind: Service\nmetadata: {name: broken}\nspec: {ports: [{port: 70000}]}\n---\n" +
		"apiVersion: example.com/v1\nkind: Unknown\nmetadata: {name: unknown}\n")

	previews, err := w.engine.Preview(t.Context(), w.target, next.Identity, w.rendered(next), release.Provided{})
	require.NoError(t, err)
	notes := map[string]string{}
	for _, p := range previews {
		notes[p.ID.Name] = p.Note
		assert.Equal(t, p.ID.Name == "broken" || p.ID.Name == "unknown", p.Refused, p.ID)
	}
	assert.Contains(t, notes["unknown"], "the cluster does not serve this kind")
	assert.Contains(t, notes["kept"], "would be kept: it has the annotation helm.sh/resource-policy: keep")
	assert.Contains(t, notes["broken"], "70000")

	foreign := w.template(configMap("same", "a"))
	foreign.OwnerHash = "somebody-else"
	_, err = w.engine.Preview(t.Context(), w.target, foreign.Identity, w.rendered(foreign), release.Provided{})
	assert.Equal(t, release.ReasonConflict, release.ReasonOf(err))
}

// K50, C13: Helm takes over nothing that lacks its marks, and refuses the whole release for one such object.
func TestPreview_refusesWhatHelmDoesNotTakeOver(t *testing.T) {
	marked := func(name, namespace string) *metav1.ObjectMeta {
		return &metav1.ObjectMeta{
			Labels:      map[string]string{"app.kubernetes.io/managed-by": "Helm"},
			Annotations: map[string]string{"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": namespace},
		}
	}
	cases := map[string]struct {
		reason string
		meta   func(*world) *metav1.ObjectMeta
		want   string
	}{
		"by hand":    {"nobody said that Helm may", func(*world) *metav1.ObjectMeta { return &metav1.ObjectMeta{} }, "it exists and belongs to no release"},
		"of another": {"it would be taken from it", func(w *world) *metav1.ObjectMeta { return marked("other", w.namespace) }, "/other: Helm refuses"},
		"of Waybill": {"it would be put back", func(*world) *metav1.ObjectMeta {
			return &metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.OwnerAnnotation: "hub/GitSync/team/site"}}
		}, "belongs to hub/GitSync/team/site: Helm refuses"},
		"of this one": {"someone prepared it, or an install failed", func(w *world) *metav1.ObjectMeta {
			return marked(w.template("").Name, w.namespace)
		}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			d := w.template(configMap("there", "wanted"))
			there := &corev1.ConfigMap{ObjectMeta: *tc.meta(w), Data: map[string]string{"key": "kept"}}
			there.Name = "there"
			_, err := w.client.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), there, metav1.CreateOptions{})
			require.NoError(t, err)

			previews, err := w.engine.Preview(t.Context(), w.target, d.Identity, w.rendered(d), release.Provided{})
			require.NoError(t, err)
			require.Len(t, previews, 1)
			assert.Equal(t, "kept", valueOf(previews[0].Before))
			assert.Equal(t, tc.want != "", previews[0].Refused, tc.reason)
			assert.Contains(t, previews[0].Note, tc.want, tc.reason)
			_, err = w.engine.Ensure(t.Context(), w.target, d)
			assert.Equal(t, tc.want != "", err != nil, "and so it comes: %v", err)
		})
	}
}

// K37: a namespace that is not created is no place for an object.
func TestPreview_refusesNamespacesThatNobodyMakes(t *testing.T) {
	w := newWorld(t)
	absent := w.namespace + "-absent"
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: early, namespace: " + absent + "}\n---\n"
	cases := map[string]struct {
		reason, text string
		with         release.Provided
		refused      bool
	}{
		"nobody":  {"the install would fail", text, release.Provided{}, true},
		"before":  {"the target namespace is made before the release", text, release.Provided{Namespaces: map[string]bool{absent: true}}, false},
		"by Helm": {"Helm writes namespaces first", text + "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + absent + "}\n", release.Provided{}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := w.template(tc.text)
			previews, err := w.engine.Preview(t.Context(), w.target, d.Identity, w.rendered(d), tc.with)
			require.NoError(t, err)
			require.NotEmpty(t, previews)
			for _, p := range previews {
				assert.Equal(t, tc.refused, p.Refused, "%s: %s", tc.reason, p.Note)
			}
		})
	}
}

// K50: what the API server has not answered to is nothing that it refuses.
func TestPreview_endsWithoutAnAnswer(t *testing.T) {
	w := newWorld(t)
	d := w.template(configMap("one", "a"))
	wanted := w.rendered(d)
	at := w.through(func(req *http.Request, next http.RoundTripper) (*http.Response, error) {
		if req.URL.Query().Has("dryRun") {
			return nil, errors.New("cut off")
		}
		return next.RoundTrip(req)
	})

	previews, err := w.engine.Preview(t.Context(), at, d.Identity, wanted, release.Provided{})
	require.ErrorContains(t, err, "try out ConfigMap "+w.namespace+"/one: ")
	assert.ErrorContains(t, err, "cut off")
	assert.Equal(t, release.ReasonUnavailable, release.ReasonOf(err))
	assert.Empty(t, previews)
}

// A block at the end of a manifest keeps its line break, in a preview as in an install.
func TestPreview_blockAtTheEnd(t *testing.T) {
	w := newWorld(t)
	d := w.template("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: block}\ndata:\n  key: |\n    text\n")
	w.ensure(d)
	previews, err := w.engine.Preview(t.Context(), w.target, d.Identity, w.rendered(d), release.Provided{})
	require.NoError(t, err)
	require.Len(t, previews, 1)
	assert.Equal(t, "text\n", valueOf(previews[0].Before))
	assert.Equal(t, "text\n", valueOf(previews[0].After))
}

func imagesOf(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	require.NotNil(t, o)
	containers, _, err := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	require.NoError(t, err)
	var images []string
	for _, c := range containers {
		image, _, _ := unstructured.NestedString(c.(values), "image")
		images = append(images, image)
	}
	return strings.Join(images, ",")
}

// K50: an upgrade deletes by Helm's marks what a noted record names, and so says its preview; what only an altered one names
// must carry ours.
func TestPreview_goesByTheRecordsThatAreNoted(t *testing.T) {
	for name, altered := range map[string]bool{"Noted": false, "Altered": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ensure(w.template(configMap("same", "a") + configMap("gone", "a")))
			unmark := []byte(`{"metadata":{"labels":{"` + v1alpha1.OwnerHashLabel + `":null}}}`)
			_, err := w.client.CoreV1().ConfigMaps(w.namespace).Patch(t.Context(), "gone", types.MergePatchType, unmark, metav1.PatchOptions{})
			require.NoError(t, err)
			if altered {
				w.alter("one", 1, func(r *helmrelease.Release) { r.Manifest += "\n" })
			}
			next := w.template(configMap("same", "a"))
			previews, err := w.engine.Preview(t.Context(), w.target, next.Identity, w.rendered(next), release.Provided{})
			require.NoError(t, err)
			require.Len(t, previews, 2)
			assert.Equal(t, altered, previews[0].After != nil, previews[0].Note)
			w.ensure(next)
			_, err = w.configMap("gone")
			assert.Equal(t, altered, err == nil, "the preview is what happens")
		})
	}
}
