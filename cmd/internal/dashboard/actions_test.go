package dashboard

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

func syncOf(namespace string) *v1alpha1.GitSync {
	return &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "team"}, Spec: v1alpha1.GitSyncSpec{URL: "https://127.0.0.1:1/team.git"}}
}

// deliveredIn creates a GitSync in a namespace of its own, and opens a dashboard in which everything may be done with it.
func deliveredIn(t *testing.T) (c client.Client, b *browser, gs *v1alpha1.GitSync, page string) {
	t.Helper()
	api := hub(t)
	ns := api.Namespace(t)
	gs = syncOf(ns)
	return create(t, api, gs), open(t, api.RESTConfig(), ns), gs, objectLink("", "", "gitsyncs", ns, "team")
}

// An action says what happens before anything does, and is done by a form that works without a script.
func TestActions_reconcileSuspendResume(t *testing.T) {
	c, b, gs, page := deliveredIn(t)
	live := func() *v1alpha1.GitSync {
		t.Helper()
		now := &v1alpha1.GitSync{}
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(gs), now))
		return now
	}
	overview := b.get(page).body
	for _, has := range []string{page + "/actions/reconcile", page + "/actions/suspend"} {
		assert.Contains(t, overview, `href="`+has)
	}
	assert.NotContains(t, overview, "/actions/resume", "it is not suspended")
	assert.NotContains(t, overview, "/actions/uninstall", "it is no installation")

	for _, step := range []struct {
		action, shows string
		after         func() bool
	}{
		{"reconcile", v1alpha1.ReconcileAtAnnotation, func() bool { return live().Annotations[v1alpha1.ReconcileAtAnnotation] != "" }},
		{"suspend", "+  suspend: true", func() bool { return live().Spec.Suspend }},
		{"resume", "-  suspend: true", func() bool { return !live().Spec.Suspend }},
	} {
		before := live().ResourceVersion
		confirm := b.get(page + "/actions/" + step.action)
		require.Equal(t, http.StatusOK, confirm.status, confirm.body)
		assert.Contains(t, confirm.text(), step.shows, "what would change")
		assert.Equal(t, before, live().ResourceVersion, "looking changes nothing")
		done := b.post(page+"/actions/"+step.action, confirm.hidden())
		require.Equal(t, http.StatusSeeOther, done.status, done.body)
		assert.Equal(t, page+"?done="+step.action, done.header.Get("Location"))
		assert.True(t, step.after(), step.action)
	}
	assert.Contains(t, b.get(page+"?done=suspend").body, "It is suspended.")
	assert.Equal(t, http.StatusNotFound, b.get(page+"/actions/resume").status, "it runs: there is nothing to resume")
	assert.Equal(t, http.StatusNotFound, b.get(page+"/actions/rm").status)
}

// Who looks at what is not so any more changes nothing.
func TestActions_onWhatWasShownAlone(t *testing.T) {
	c, b, gs, page := deliveredIn(t)
	page += "/actions/suspend"
	form := b.get(page).hidden()
	before := gs.DeepCopy()
	gs.Spec.Path = "elsewhere"
	require.NoError(t, c.Patch(t.Context(), gs, client.MergeFrom(before)))
	got := b.post(page, form)
	assert.Equal(t, http.StatusConflict, got.status)
	assert.Contains(t, got.body, "it was modified since the page was shown, and nothing was done")
	assert.Equal(t, http.StatusConflict, b.post(page, url.Values{"step": {"apply"}}).status, "nothing was shown")
	other := b.get(page).hidden()
	other.Set("uid", "of-one-that-was-deleted")
	assert.Equal(t, http.StatusConflict, b.post(page, other).status, "one of the same name was shown")
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(gs), gs))
	assert.False(t, gs.Spec.Suspend)
}

// A form that another site has a browser send is refused.
func TestActions_fromOtherPages(t *testing.T) {
	c, b, gs, page := deliveredIn(t)
	page += "/actions/suspend"
	form := b.get(page).hidden()
	for reason, forge := range map[string]func(*http.Request){
		"another origin":                func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"no origin, as in a sandbox":    func(r *http.Request) { r.Header.Set("Origin", "null") },
		"another site, says a browser":  func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"another port of this machine":  func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") },
		"the same site, another origin": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
	} {
		assert.Equal(t, http.StatusForbidden, b.post(page, form, forge).status, reason)
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		got := b.do(method, page+"?"+form.Encode())
		assert.Equal(t, http.StatusOK, got.status, "it shows what would happen")
	}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(gs), gs))
	assert.False(t, gs.Spec.Suspend, "nothing was written")
}

// K70: what a user may not do is not offered, refused when it is asked for all the same, and the right is named.
func TestActions_withoutTheRight(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	gs := syncOf(ns)
	inst := &v1alpha1.ApplicationInstallation{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
		Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: "web", Version: "1.0.0"}},
	}
	c := create(t, api, gs, inst)
	for _, o := range []client.Object{gs, inst} {
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	}
	user := open(t, reader(t, api, ns), ns)
	page, sync := objectLink("", "", "applicationinstallations", ns, "web"), objectLink("", "", "gitsyncs", ns, "team")

	overview := user.get(page).body
	assert.Contains(t, overview, `<span class="button" aria-disabled="true">Uninstall</span>`)
	assert.Contains(t, overview, "Why may I not?")
	assert.Contains(t, overview, "You may not delete applicationinstallations.apps.waybill.dev web in namespace "+ns)
	assert.NotContains(t, overview, `href="`+page+"/actions/uninstall")
	rights := user.get(page + "/rights").body
	for _, text := range []string{
		"You may not patch applicationinstallations.apps.waybill.dev web in namespace " + ns,
		"You may not install applicationdefinitions.apps.waybill.dev web",
		"You may not get pods/log in namespace " + ns,
	} {
		assert.Contains(t, rights, text)
	}
	admin := open(t, api.RESTConfig(), ns).get(page + "/rights").body
	assert.NotContains(t, admin, "You may not", "who may all misses nothing")

	for action, right := range map[string]string{
		page + "/actions/uninstall": "You may not delete applicationinstallations.apps.waybill.dev web in namespace " + ns,
		page + "/actions/upgrade":   "You may not patch applicationinstallations.apps.waybill.dev web in namespace " + ns,
		sync + "/actions/suspend":   "You may not patch gitsyncs.apps.waybill.dev team in namespace " + ns,
	} {
		form := url.Values{"step": {"apply"}, "force": {"true"}}
		for _, o := range []client.Object{gs, inst} {
			if action == page+"/actions/uninstall" || o == gs {
				form.Set("uid", string(o.GetUID()))
				form.Set("generation", "1")
			}
		}
		got := user.post(action, form)
		assert.Equal(t, http.StatusForbidden, got.status, action)
		assert.Contains(t, got.body, right, action)
	}
	for _, o := range []client.Object{gs, inst} {
		before := o.GetResourceVersion()
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		assert.Equal(t, before, o.GetResourceVersion(), "nothing was written")
		assert.Nil(t, o.GetDeletionTimestamp())
	}
}
