package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/stretchr/testify/assert"
)

// unanswered has the streams of a page end at once, but for the eighth, which is open before it ends; and timers ring at once, which
// notes how long they were to wait. The address of the page says what Math.random returns.
const unanswered = `
	Math.random = () => Number(new URLSearchParams(location.search).get("chance"));
	window.waits = [];
	const later = window.setTimeout;
	let streams = 0;
	window.EventSource = class {
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
