package browser

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
)

// unanswered has the streams of a page end at once, but for the eighth, which is open before it ends; and timers ring at once, which
// notes how long they were to wait. The address of the page says what Math.random returns.
const unanswered = `
	Math.random = () => Number(new URLSearchParams(location.search).get("chance"));
	window.waits = [];
	const later = window.setTimeout;
	let streams = 0;
	window.EventSource = class {
		static CLOSED = 2;
		readyState = 0;
		constructor() {
			streams++;
			const open = streams === 8, over = streams > 10;
			later(() => { if (over) return; if (open) this.onopen(); this.onerror(); }, 0);
		}
		addEventListener() {}
		close() {}
	};
	window.setTimeout = (call, wait) => {
		if (!String(call).includes("/search")) return later(call, wait);
		waits.push(wait);
		return later(call, 0);
	};`

// K68: a stream that ends is opened again after pauses that become longer, are bounded, and differ between tabs: not all of them
// come back at once. One that was open begins anew.
func TestLive_backsOffWithJitter(t *testing.T) {
	w := fleet(t)
	b := open(t, start(t, w.hub.RESTConfig(), system))
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: unanswered})
	waits := func(chance float64) []float64 {
		t.Helper()
		b.visit(fmt.Sprintf("/?chance=%v", chance))
		b.await("window.waits?.length >= 10")
		return eval[[]float64](b, "waits.slice(0, 10)")
	}
	middle := []float64{1000, 2000, 4000, 8000, 16000, 30000, 30000, 1000, 2000, 4000}
	assert.InDeltaSlice(t, middle, waits(0.5), 1)
	for i, wait := range waits(0) {
		assert.InDelta(t, middle[i]/2, wait, 1, "half as long at least")
	}
	for i, wait := range waits(0.999) {
		assert.InDelta(t, middle[i]*1.5, wait, middle[i]/100, "half as long again at most")
	}
}

// heeding has timers of more than 45 seconds ring when a test has them ring, and notes how long they were to wait.
const heeding = `
	window.asked = [];
	const later = window.setTimeout;
	window.setTimeout = (call, wait) => {
		if (wait < 45000) return later(call, wait);
		window.ring = call;
		asked.push(wait);
		return 0;
	};`

// A page whose stream is refused says why, asks again when it may, and is followed then. The dashboard does answer.
func TestLive_refused(t *testing.T) {
	w := fleet(t)
	b := open(t, start(t, w.hub.RESTConfig(), system))
	b.expects("429")
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: heeding})
	b.visit("/gitsyncs")
	b.awaitText("team-a")
	b.see(false)
	free := b.occupy()
	b.see(true)
	b.awaitText("This page is not followed for now")
	assert.Contains(t, b.text(), "Too many pages are open")
	assert.NotContains(t, b.text(), "does not answer")
	assert.Contains(t, b.text(), "team-a", "what it had")
	b.await("asked.length === 1")
	assert.GreaterOrEqual(t, eval[float64](b, "asked[0]"), 60000.0, "when it was told to ask again, or later")
	b.check()
	free()
	b.await(`(window.ring?.(), window.ring = null, !document.body.innerText.includes("This page is not followed for now"))`)
}

// maxStreamsEach is how many pages of one user are followed at a time.
const maxStreamsEach = 60

// occupy opens streams, as many as there may be, and returns the function that closes them.
func (b *tab) occupy() (free func()) {
	b.t.Helper()
	call(b, network.Enable, network.EnableParams{})
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	found, err := chromedp.Call(ctx, network.GetCookies, network.GetCookiesParams{})
	require.NoError(b.t, err)
	held, free := context.WithCancel(b.t.Context())
	one := func() bool {
		request, err := http.NewRequestWithContext(held, http.MethodGet, b.address+"/live?kind="+v1alpha1.GitSyncKind, nil)
		require.NoError(b.t, err)
		for _, one := range found.Cookies {
			request.AddCookie(&http.Cookie{Name: one.Name, Value: one.Value})
		}
		response, err := http.DefaultClient.Do(request)
		require.NoError(b.t, err)
		b.t.Cleanup(func() { _ = response.Body.Close() })
		return response.StatusCode == http.StatusOK
	}
	for range maxStreamsEach {
		require.Eventually(b.t, one, limit, often, "that of the tab is closed before long")
	}
	return free
}
