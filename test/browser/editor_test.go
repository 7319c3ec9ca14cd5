package browser

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
)

const review = "button.primary"

// K67: values are found, set and corrected from the keyboard, with what the chart's schema knows of them. What does not fit is said with its path,
// and what was written is still there.
func TestEditor_byKeyboard(t *testing.T) {
	w := fleet(t)
	b := open(t, start(t, w.hub.RESTConfig(), system))
	b.expects("422")
	b.visit(webPage + "/actions/upgrade")
	b.await(`document.querySelector("#known button")`)
	b.set("#values", kb.Delete)
	b.press(kb.Tab)
	assert.Equal(t, "Filter", eval[string](b, "document.activeElement.labels?.[0]?.innerText.trim()"))
	b.press("PORT" + kb.Enter)
	assert.Equal(t, "service.port", eval[string](b, `[...document.querySelectorAll("#known li:not([hidden]) > code")].map((c) => c.innerText).join()`))
	b.check()
	b.tabTo("button Add")
	assert.Equal(t, "Add service.port", eval[string](b, "document.activeElement.ariaLabel"))
	b.press(kb.Enter)
	assert.Contains(t, b.focused(), "textarea#values", "the value is written where it was added")
	b.press("70000")
	assert.Equal(t, "service:\n  port: 70000\n", eval[string](b, `document.getElementById("values").value`))

	b.tabTo("button Show what would change")
	b.press(kb.Enter)
	b.await(`document.querySelector("#problems")`)
	assert.Contains(t, eval[string](b, `document.getElementById("problems").innerText`), "service.port: Invalid value: must be at most 65535")
	b.check()
	b.await(`document.querySelector("#known button")`)
	assert.Equal(t, "service:\n  port: 70000\n", eval[string](b, `document.getElementById("values").value`), "what was written")
	b.set("#values", "service:\n  port: 8080")
	b.tabTo("button Show what would change")
	b.press(kb.Enter)
	b.awaitText("what happens")
	assert.Contains(t, b.text(), "port: 8080")
}

// A value that is added goes below what is there of its path.
func TestEditor_addsToWhatIsThere(t *testing.T) {
	w := fleet(t)
	b := open(t, start(t, w.hub.RESTConfig(), system))
	b.visit(webPage + "/actions/upgrade")
	b.await(`document.querySelector("#known button")`)
	b.set("#values", "page:\n  title: Hi\nreplicas: 3")
	b.click(`button[aria-label="Add page.text"]`)
	assert.Equal(t, "page:\n  text: \n  title: Hi\nreplicas: 3\n", eval[string](b, `document.getElementById("values").value`))
	b.press("Hello")
	assert.Equal(t, "page:\n  text: Hello\n  title: Hi\nreplicas: 3\n", eval[string](b, `document.getElementById("values").value`), "the cursor is behind it")
}

// Values are written, refused and accepted without JavaScript, and what the chart knows is beside them.
func TestEditor_withoutJavaScript(t *testing.T) {
	w := fleet(t)
	b := open(t, start(t, w.hub.RESTConfig(), system))
	b.expects("422")
	b.withoutScript()
	b.visit(webPage + "/actions/upgrade")
	assert.Contains(t, b.html(), "<code>service.port</code>")
	assert.False(t, eval[bool](b, `!!document.querySelector("#known button")`), "a button that does nothing")
	b.set("#values", "replicas: 21")
	b.click(review)
	b.await(`document.querySelector("#problems")`)
	assert.Contains(t, eval[string](b, `document.getElementById("problems").innerText`), "replicas: Invalid value: must be at most 20")
	b.set("#values", "replicas: 4")
	b.click(review)
	b.awaitText("what happens")
	assert.Contains(t, b.text(), "replicas: 4")
}
