package browser

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// K68: what changes is seen without a reload and without losing one's place.
func TestLive_changeIsSeen(t *testing.T) {
	w := fleet(t)
	ns := w.hub.Namespace(t)
	removeAll(t, w.hub, &v1alpha1.KubernetesCluster{}, ns)
	c := clientOf(t, w.hub.RESTConfig())
	k := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "vienna"}}
	create(t, c, k)
	b := open(t, start(t, tenant(t, w.hub, ns), ns))
	b.awaitText("vienna")
	eval[chromedp.Void](b, `window.sameDocument = true; document.querySelector("main a[href*=vienna]").focus(); null`)
	for i := range 5 {
		version := fmt.Sprintf("v1.36.%d", i)
		before := k.DeepCopy()
		k.Status.Version = version
		require.NoError(t, c.Status().Patch(t.Context(), k, client.MergeFrom(before)))
		b.awaitText(version)
	}
	assert.True(t, eval[bool](b, "window.sameDocument"), "nothing was reloaded")
	assert.Equal(t, "a vienna", b.focused(), "the focus is where it was")
	b.check()
}

// A page whose filter is typed into stays as it is until that loses the focus, and then has what has changed meanwhile; what was typed is
// still there.
func TestLive_changeWhileTyping(t *testing.T) {
	w := fleet(t)
	ns := w.hub.Namespace(t)
	removeAll(t, w.hub, &v1alpha1.KubernetesCluster{}, ns)
	c := clientOf(t, w.hub.RESTConfig())
	k := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "vienna"}}
	create(t, c, k)
	b := open(t, start(t, tenant(t, w.hub, ns), ns))
	b.awaitText("vienna")
	b.set("main input[name=selector]", "env=")
	eval[chromedp.Void](b, `window.copies = 0; document.addEventListener("refreshed", () => { copies++; });
		const ask = window.fetch;
		window.fetch = async (...what) => { const answer = await ask(...what); window.seen = await answer.clone().text(); return answer; }; null`)
	before := k.DeepCopy()
	k.Status.Version = "v1.36.9"
	require.NoError(t, c.Status().Patch(t.Context(), k, client.MergeFrom(before)))
	b.await(`window.seen?.includes("v1.36.9")`)
	b.press("prod")
	assert.Equal(t, "env=prod", eval[string](b, "document.activeElement.value"), "who types is not disturbed")
	assert.Zero(t, eval[int](b, "copies"))
	eval[chromedp.Void](b, `document.querySelector("main button").focus(); null`)
	b.awaitText("v1.36.9")
	assert.Equal(t, "env=prod", eval[string](b, "document.querySelector('main input[name=selector]').value"))
	assert.Equal(t, "button Filter", b.focused(), "the focus is where it was")
}

// A hub that goes away is said to be away; what was read stays, and is right again by itself.
func TestLive_hubGoesAway(t *testing.T) {
	w := fleet(t)
	gate, config := behindGate(t, w.hub)
	b := open(t, start(t, config, system))
	b.awaitText("berlin")
	gate.Shut()
	b.awaitText("The hub does not answer")
	assert.Contains(t, b.text(), "helsinki", "what it had")
	b.check()
	require.NoError(t, gate.Open())
	b.awaitNoText("The hub does not answer")
}

// A page that is read when it is looked at keeps what it had when what it is read from goes away, says so, and comes back by itself.
func TestLive_objectOfHubThatGoesAway(t *testing.T) {
	w := fleet(t)
	gate, config := behindGate(t, w.hub)
	b := open(t, start(t, config, system))
	b.expects("502")
	b.visit(syncPage)
	b.losesAndRegains(gate, "installations/wordpress.yaml")
}

// losesAndRegains has the page that is open lose what it is read from, and looks at it, without going there again.
func (b *tab) losesAndRegains(gate *env.Gate, has string) {
	b.t.Helper()
	b.awaitText(has)
	eval[chromedp.Void](b, `window.sameDocument = true; null`)
	gate.Shut()
	b.awaitText("this is what was last seen")
	assert.Contains(b.t, b.text(), "does not answer")
	assert.Contains(b.t, b.text(), has, "what it had")
	b.check()
	require.NoError(b.t, gate.Open())
	b.awaitNoText("this is what was last seen")
	assert.Contains(b.t, b.text(), has)
	assert.True(b.t, eval[bool](b, "window.sameDocument"), "nothing was reloaded")
}

// A dashboard that was started again does not know the browser; the page says what to do, and stops asking.
func TestLive_sessionExpires(t *testing.T) {
	w := fleet(t)
	d := start(t, w.hub.RESTConfig(), system)
	b := open(t, d)
	b.expects("Failed to load resource")
	b.awaitText("berlin")
	require.NoError(t, d.Kill())
	b.awaitText("The dashboard does not answer")
	assert.Contains(t, b.text(), "helsinki", "what it had")

	port := d.address[strings.LastIndex(d.address, ":")+1:]
	again := start(t, w.hub.RESTConfig(), system, "--port="+port)
	b.awaitText("Open the address that `waybill dashboard`")
	b.check()
	b.visit(again.login)
	b.awaitText("berlin")
}

// Pages of a user cluster keep what they had when it does not answer any more. Only those that are opened then wait for it; they say
// when it was last seen.
func TestLive_clusterDies(t *testing.T) {
	w := fleet(t)
	d := start(t, w.hub.RESTConfig(), system)
	b := open(t, d)
	b.expects("502")
	defer func() { require.NoError(t, w.gate.Open()) }()
	for _, page := range []string{installationPage, installationPage + "/tree"} {
		b.visit(page)
		b.await(`performance.getEntriesByType("resource").some((e) => e.name === location.href)`) // its watch has begun
		b.losesAndRegains(w.gate, "2 of 3 replicas")
	}
	w.gate.Shut()
	b.visit(installationPage)
	b.awaitText("does not answer")
	b.awaitText("The hub has last seen it at")
	b.check()
	b.visit("/")
	b.awaitText("berlin")
}

// A user cluster that takes connections and never answers is waited for by those who look at it alone: others have their pages
// meanwhile. In the end, its part says that it does not answer, and when it was last seen.
func TestLive_clusterHangs(t *testing.T) {
	w := fleet(t)
	d := start(t, w.hub.RESTConfig(), system)
	b := open(t, d)
	b.visit(installationPage)
	b.awaitText("2 of 3 replicas")
	require.NoError(t, w.gate.Hang())
	defer func() { require.NoError(t, w.gate.Open()) }()
	b.expects("502")
	eval[chromedp.Void](b, `window.hung = null; fetch(`+quoted(installationPage)+`).then(async (r) => { window.hung = r.status + " " + await r.text(); }); null`)
	for _, page := range []struct{ path, has string }{{"/", "helsinki"}, {"/catalog", "cert-manager"}, {"/gitsyncs", "team-a"}} {
		assert.Contains(t, eval[string](b, `fetch(`+quoted(page.path)+`).then((r) => r.text())`, chromedp.EvalAwaitPromise), page.has)
		assert.True(t, eval[bool](b, "window.hung === null"), "%s does not wait for it", page.path)
	}
	b.await("window.hung !== null")
	hung := eval[string](b, "window.hung")
	assert.Contains(t, hung, "502")
	assert.Contains(t, hung, "does not answer in time")
	assert.Contains(t, hung, "The hub has last seen it at")
	b.visit("/")
	b.awaitText("berlin")
}

// A hidden tab has no stream, and is current when it is shown again.
func TestLive_hiddenTabAsksNothing(t *testing.T) {
	w := fleet(t)
	ns := w.hub.Namespace(t)
	removeAll(t, w.hub, &v1alpha1.KubernetesCluster{}, ns)
	c := clientOf(t, w.hub.RESTConfig())
	k := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "vienna"}}
	create(t, c, k)
	b := open(t, start(t, tenant(t, w.hub, ns), ns))
	var streams streams
	require.NoError(t, chromedp.Listen(b.ctx, streams.note))
	call(b, network.Enable, network.EnableParams{})
	b.visit("/")
	b.awaitText("vienna")
	require.Eventually(t, func() bool { return streams.open() == 1 }, limit, often)

	b.see(false)
	require.Eventually(t, func() bool { return streams.open() == 0 }, limit, often, "a tab that is hidden")
	before := k.DeepCopy()
	k.Status.Version = "v1.36.7"
	require.NoError(t, c.Status().Patch(t.Context(), k, client.MergeFrom(before)))
	b.see(true)
	b.awaitText("v1.36.7")
	require.Eventually(t, func() bool { return streams.open() == 1 }, limit, often)
}

// see has the tab be seen, or hidden.
func (b *tab) see(seen bool) {
	b.t.Helper()
	eval[chromedp.Void](b, fmt.Sprintf(`Object.defineProperty(document, "hidden", {value: %t, configurable: true});
		document.dispatchEvent(new Event("visibilitychange")); null`, !seen))
}

// streams counts those that a tab has open.
type streams struct {
	mu    sync.Mutex
	known map[network.RequestID]bool
}

func (s *streams) note(event any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if strings.Contains(e.Request.URL, "/live?") {
			if s.known == nil {
				s.known = map[network.RequestID]bool{}
			}
			s.known[e.RequestID] = true
		}
	case *network.EventLoadingFailed:
		delete(s.known, e.RequestID)
	case *network.EventLoadingFinished:
		delete(s.known, e.RequestID)
	}
}

func (s *streams) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.known)
}
