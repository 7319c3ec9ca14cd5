package release_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	helmrelease "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/sync/deliver/release"
)

// C41: after a start, the releases of a namespace are found as they were noted by one list.
func TestResume_oneListForANamespace(t *testing.T) {
	w := newWorld(t)
	w.ensure(w.desired("web", nil))
	w.ensure(w.desired("hooked", values{"events": "pre-delete"}))
	w.engine = release.NewEngine().RenderedBy(builder)
	web, hooked := w.desired("web", nil), w.desired("hooked", values{"events": "pre-delete"})
	requests := w.calls(func() {
		assert.True(t, w.engine.Resume(t.Context(), w.target, web))
		assert.True(t, w.engine.Resume(t.Context(), w.target, hooked))
	})
	require.Len(t, requests, 1)
	assert.Equal(t, "list", requests[0].Verb)
	assert.False(t, w.engine.Resume(t.Context(), w.target, web), "the list answers once: it is no news later")
}

// K53: what is not as it was noted, or as it is wanted, is for Ensure to find out.
func TestResume_noticesWhatChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*world)
		wanted values
	}{
		"ElseWanted":  {"other values", func(*world) {}, values{"replicas": 2}},
		"Altered":     {"others wrote its record", func(w *world) { w.alter("web", 1, w.addBinding) }, nil},
		"AlteredBack": {"and back: it is read, to be sure", func(w *world) { w.alter("web", 1, func(*helmrelease.Release) {}) }, nil},
		"Forged":      {"a revision that nobody noted", func(w *world) { w.forge("web", "sh.helm.release.v1.web.v2", "2", "{}") }, nil},
		"Impossible":  {"a Secret that passes for a record is told of", func(w *world) { w.forge("web", "another-name", "2", "{}") }, nil},
		"OwnerChanged": {"it says that it is another's", func(w *world) {
			w.label("sh.helm.release.v1.web.v1", map[string]string{"apps.waybill.dev/owner-hash": "them"})
		}, nil},
		"Gone": {"there is none", func(w *world) {
			require.NoError(w, w.client.CoreV1().Secrets(w.namespace).Delete(w.Context(), "sh.helm.release.v1.web.v1", metav1.DeleteOptions{}))
		}, nil},
		"NeverNoted": {"nothing is known of it", func(w *world) { delete(w.known, "web") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ensure(w.desired("web", nil))
			tc.change(w)
			assert.False(t, w.engine.Resume(t.Context(), w.target, w.desired("web", tc.wanted)), tc.reason)
		})
	}
}
