package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// syncOf returns a GitSync of the test's own, what changes it, and the address of its page.
func syncOf(t *testing.T, hub *env.Cluster) (change func(func(*v1alpha1.GitSync)), page string) {
	t.Helper()
	ns := hub.Namespace(t)
	removeAll(t, hub, &v1alpha1.GitSync{}, ns)
	c := clientOf(t, hub.RESTConfig())
	sync := &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "team"}, Spec: v1alpha1.GitSyncSpec{URL: "https://127.0.0.1:1/team.git"}}
	create(t, c, sync)
	return func(f func(*v1alpha1.GitSync)) {
		t.Helper()
		before := sync.DeepCopy()
		f(sync)
		require.NoError(t, c.Patch(t.Context(), sync, client.MergeFrom(before)))
	}, objectPath("", "", "gitsyncs", ns, "team")
}

// K68: what a page renders is not rendered whenever something changes: the page says that it has, until it is read again.
func TestLive_outdatedPage(t *testing.T) {
	w := fleet(t)
	change, page := syncOf(t, w.hub)
	b := open(t, start(t, w.hub.RESTConfig(), system))
	const outdated = "It has changed since this page was read."
	for _, of := range []string{"manifests", "diff"} {
		b.visit(page + "/" + of)
		b.awaitText("not known")
		assert.NotContains(t, b.text(), outdated, "nothing has changed")
		change(func(s *v1alpha1.GitSync) { s.Labels = map[string]string{"changed-on": of} })
		b.awaitText(outdated)
		b.check()
		b.see(false)
		b.see(true)
		b.awaitText(outdated)
		b.click("#outdated a")
		b.awaitText("not known")
		b.awaitNoText(outdated)
	}
}

// K68: what may be done with an object depends on it: the page that says so follows it.
func TestLive_rights(t *testing.T) {
	w := fleet(t)
	change, page := syncOf(t, w.hub)
	b := open(t, start(t, w.hub.RESTConfig(), system))
	b.visit(page + "/rights")
	b.awaitText("Suspend")
	eval[chromedp.Void](b, `window.sameDocument = true; null`)
	change(func(s *v1alpha1.GitSync) { s.Spec.Suspend = true })
	b.awaitText("Resume")
	assert.True(t, eval[bool](b, "window.sameDocument"), "nothing was reloaded")
}
