package browser

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// Every page is reached, and used, by the keyboard.
func TestKeyboard(t *testing.T) {
	w := fleet(t)
	b := open(t, start(t, w.hub.RESTConfig(), system))
	b.awaitText("berlin")
	b.press(kb.Tab)
	assert.Equal(t, "a Skip to content", b.focused())
	b.check()
	b.press(kb.Enter)
	assert.Contains(t, b.focused(), "main#main")

	b.press("/")
	assert.Contains(t, b.focused(), "input#search")
	b.press("gitsync/ but berl" + kb.Home)
	assert.Contains(t, b.focused(), "input#search", "a slash can be typed there")
	b.set("#search", "")
	b.press("berl" + kb.Enter)
	b.await(`location.pathname === "/search"`)
	b.awaitText("Results for berl")
	b.tabTo("a berlin")
	b.press(kb.Enter)
	b.await(`document.querySelector("h1")?.innerText.startsWith("berlin")`)
}

// tabTo presses Tab until something has the focus.
func (b *tab) tabTo(want string) {
	b.t.Helper()
	for range 200 {
		if b.focused() == want {
			assert.NotEqual(b.t, "none", eval[string](b, "getComputedStyle(document.activeElement).outlineStyle"), "the focus of %s is not seen", want)
			return
		}
		b.press(kb.Tab)
	}
	b.t.Fatalf("no %q is reached by Tab", want)
}

// A tree is walked by arrows, as the treegrid pattern of WAI-ARIA has it; where one is survives a change.
func TestKeyboard_treegrid(t *testing.T) {
	w := fleet(t)
	b := open(t, start(t, w.hub.RESTConfig(), system))
	b.visit(installationPage + "/tree")
	b.awaitText("wordpress-7d9c6b5f48-4hj8z")
	shown := func() int {
		return eval[int](b, `document.querySelectorAll("[role=treegrid] tbody tr:not([hidden])").length`)
	}
	all := shown()
	require.Greater(t, all, 8)
	row := func() string {
		return eval[string](b, `document.activeElement.cells?.[0].innerText.replace(/\s+/g, " ").trim() ?? ""`)
	}
	b.await(`(document.querySelector("[role=treegrid] tbody tr").focus(), true)`)
	assert.Equal(t, "ApplicationInstallation wordpress", row())
	b.press(kb.ArrowDown)
	second := row()
	assert.NotEqual(t, "ApplicationInstallation wordpress", second)
	eval[chromedp.Void](b, `document.addEventListener("refreshed", () => { window.refreshed = true; })`)
	c := clientOf(t, w.berlin.RESTConfig())
	installation := &v1alpha1.ApplicationInstallation{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "team-a", Name: "wordpress"}, installation))
	before := installation.DeepCopy()
	installation.Labels = map[string]string{"touched": "true"}
	require.NoError(t, c.Patch(t.Context(), installation, client.MergeFrom(before)))
	b.await("window.refreshed")
	assert.Equal(t, second, row(), "the focus stays where it was")
	b.press(kb.ArrowUp + kb.ArrowLeft)
	assert.Equal(t, 1, shown(), "the branch is closed")
	b.check()
	b.press(kb.ArrowRight)
	assert.Equal(t, all, shown(), "and open again")
	b.press(kb.End)
	last := row()
	b.press(kb.ArrowLeft)
	assert.NotEqual(t, last, row(), "to what it is part of")
	b.press(kb.Home)
	assert.Equal(t, "ApplicationInstallation wordpress", row())
	b.press(kb.Enter)
	b.await("location.pathname === " + quoted(installationPage))
}
