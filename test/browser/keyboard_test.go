package browser

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
)

// Whoever has no mouse gets everywhere.
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
