package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/env"
)

// limit is how long a page may take, and the browser to start; only a test that fails ever waits so long.
const limit = 2 * env.Limit

// flags have the browser start as new, and send requests to the dashboard alone. They need neither user namespaces nor a large /dev/shm,
// which containers may lack.
var flags = append(chromedp.DefaultExecAllocatorOptions[:],
	chromedp.WSURLReadTimeout(limit), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
	chromedp.Flag("hide-scrollbars", true), chromedp.Flag("ignore-certificate-errors", true), // the dashboard in the hub signs its own
)

var stopChromium = func() {}

// startChromium starts the browser of all tests.
var startChromium = sync.OnceValues(func() (context.Context, error) {
	var path string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		return nil, errors.New("these tests need a browser: install Debian's package chromium, or put google-chrome into PATH")
	}
	allocated, release := chromedp.NewExecAllocator(context.Background(), append(flags, chromedp.ExecPath(path))...)
	ctx, cancel := chromedp.NewContext(allocated)
	stopChromium = func() {
		cancel()
		release()
	}
	if err := chromedp.Do(ctx); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return ctx, nil
})

// browser returns the browser. The test is skipped where there is none; in CI, it fails.
func browser(t testing.TB) context.Context {
	t.Helper()
	ctx, err := startChromium()
	needs(t, err)
	return ctx
}

// needs skips a test for what is missing here, unless it must not be missing.
func needs(t testing.TB, missing error) {
	t.Helper()
	if missing == nil {
		return
	}
	if os.Getenv("BROWSER") == "1" {
		t.Fatal(missing)
	}
	saySkipped.Do(func() { fmt.Println("SKIPPED:", missing) }) // which is shown without -v, too
	t.Skip(missing)
}

var saySkipped sync.Once

// tab is a page in a browser that knows nothing of other tabs: no cookies, no cache.
type tab struct {
	t       testing.TB
	ctx     context.Context
	address string // of the dashboard

	mu         sync.Mutex
	complaints []string
	expected   []string
}

// open opens a tab and has the dashboard let it in.
func open(t testing.TB, d dashboard) *tab {
	t.Helper()
	b := newTab(t, d)
	b.visit(d.login)
	b.await(`document.querySelector("main")`)
	return b
}

// newTab opens a tab that was not let in yet.
func newTab(t testing.TB, d dashboard) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser(t), chromedp.WithNewBrowserContext())
	b := &tab{t: t, ctx: ctx, address: d.address}
	t.Cleanup(func() {
		cancel()
		b.mu.Lock()
		defer b.mu.Unlock()
		assert.Empty(t, b.complaints, "the browser complains")
	})
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.complain(e.ExceptionDetails.Text)
		case *log.EventEntryAdded: // what a CSP forbids, and what cannot be loaded
			b.complain(e.Entry.Text + " " + e.Entry.URL)
		}
	}))
	call(b, log.Enable, cdp.Empty{})
	b.size(1280, 900)
	return b
}

func (b *tab) complain(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.ContainsFunc(b.expected, func(e string) bool { return strings.Contains(what, e) }) {
		b.complaints = append(b.complaints, what)
	}
}

// expects has complaints of the browser that contain a text be no fault.
func (b *tab) expects(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, text)
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, steps...))
}

// call sends a command of the browser's protocol.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	_, err := chromedp.Call(ctx, command, params)
	require.NoError(b.t, err)
}

// visit goes to a path of the dashboard and returns the status that the page has.
func (b *tab) visit(path string) int {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	response, err := chromedp.RunResponse(ctx, chromedp.Navigate(b.address+path))
	require.NoError(b.t, err)
	return int(response.Status)
}

func (b *tab) size(width, height int64) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height))
}

// eval returns the value of a JavaScript expression.
func eval[T any](b *tab, expression string, options ...chromedp.EvaluateOption) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, options...))
	require.NoError(b.t, err, expression)
	return value
}

// await waits until a JavaScript expression is true, on this page or one that comes after it.
func (b *tab) await(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	tick := time.NewTicker(often)
	defer tick.Stop()
	for {
		// It fails while one page replaces another.
		if ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")")); ok && err == nil {
			return
		}
		select {
		case <-ctx.Done():
			b.t.Fatalf("it does not become true: %s; the page is:\n%s", expression, b.text())
		case <-tick.C:
		}
	}
}

// awaitText waits until the page has a text.
func (b *tab) awaitText(text string) {
	b.t.Helper()
	b.await("document.body.innerText.includes(" + quoted(text) + ")")
}

// awaitNoText waits until the page has a text no longer.
func (b *tab) awaitNoText(text string) {
	b.t.Helper()
	b.await("!document.body.innerText.includes(" + quoted(text) + ")")
}

// text returns what the page says.
func (b *tab) text() string { return eval[string](b, "document.body.innerText") }

// press types keys, wherever the focus is.
func (b *tab) press(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// click clicks what a CSS selector finds.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.await("document.querySelector(" + quoted(selector) + ")")
	b.do(chromedp.Click(chromedp.CSS(selector)))
}

// focused describes what has the focus.
func (b *tab) focused() string {
	return eval[string](b, `(e => e ? e.tagName.toLowerCase() + (e.id ? "#" + e.id : "") + " " + (e.innerText || e.value || "").trim().split("\n")[0] : "")(document.activeElement)`)
}

// quoted returns a text as a JavaScript literal.
func quoted(text string) string {
	literal, _ := json.Marshal(text) // a string can be encoded
	return string(literal)
}

// scheme has the system of the user wish for dark or light colours.
func (b *tab) scheme(dark bool) {
	b.t.Helper()
	value := "light"
	if dark {
		value = "dark"
	}
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: value}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

// withoutScript has pages run no JavaScript from now on.
func (b *tab) withoutScript() {
	b.t.Helper()
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

// html returns the page as it is, also without JavaScript.
func (b *tab) html() string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	html, err := chromedp.Run(ctx, chromedp.OuterHTML(chromedp.CSS("html")))
	require.NoError(b.t, err)
	return html
}

// set types into a field, in place of what it has.
func (b *tab) set(selector, value string) {
	b.t.Helper()
	b.await("document.querySelector(" + quoted(selector) + ")")
	eval[chromedp.Void](b, "(f => { f.focus(); f.select(); })(document.querySelector("+quoted(selector)+"))")
	b.press(value)
}

// choose chooses the option of a list that contains a text, as a user would.
func (b *tab) choose(selector, text string) {
	b.t.Helper()
	b.await("document.querySelector(" + quoted(selector) + ")")
	require.True(b.t, eval[bool](b, `((list, text) => {
		const option = [...list.options].find((o) => o.text.includes(text));
		if (option) { list.value = option.value; list.dispatchEvent(new Event("change", {bubbles: true})); }
		return !!option;
	})(document.querySelector(`+quoted(selector)+`), `+quoted(text)+`)`), "%s has no %q", selector, text)
}

// submit types into a field, presses Enter, and waits for the next page.
func (b *tab) submit(selector, value string) {
	b.t.Helper()
	b.set(selector, value)
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	_, err := chromedp.RunResponse(ctx, chromedp.KeyEvent(kb.Enter))
	require.NoError(b.t, err)
}
