package browser

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// K66, K69: the address that is printed opens the fleet, once, and does not stay in the address bar.
func TestVisit_first(t *testing.T) {
	w := fleet(t)
	d := start(t, w.hub.RESTConfig(), system)
	b := newTab(t, d)
	b.expects("401")
	assert.Equal(t, http.StatusUnauthorized, b.visit("/"), "there is no way in without the address")
	assert.Contains(t, b.text(), "waybill dashboard")

	b.visit(d.login)
	b.awaitText("berlin")
	assert.Equal(t, "/", eval[string](b, "location.pathname + location.search"), "the token is in no history")
	assert.Contains(t, b.text(), "cert-manager")
	b.check()

	late := newTab(t, d)
	late.expects("401")
	assert.Equal(t, http.StatusUnauthorized, late.visit(d.login), "the address is good for once")
	assert.Contains(t, late.text(), "used already")
}

// The pages of what tests look at most.
var (
	installationPage = objectPath(system, "berlin", "applicationinstallations", "team-a", "wordpress")
	webPage          = objectPath(system, "berlin", "applicationinstallations", "team-a", "web")
	syncPage         = objectPath("", "", "gitsyncs", system, "team-a")
)

// pages are the addresses of all pages, by the name of their pictures, and what they have to say.
var pages = []struct{ name, path, has string }{
	{"fleet", "/", "berlin"},
	{"fleet-filtered", "/?selector=environment%3Dstaging&text=wordpress", "wordpress"},
	{"catalog", "/catalog", "cert-manager"},
	{"entry", "/catalog/wordpress", "6.7.2"},
	{"install", "/catalog/web/install", "Install Static page"},
	{"deliveries", "/gitsyncs", "team-a"},
	{"search", "/search?q=wordpress", "wordpress"},
	{"cluster", objectPath("", "", "kubernetesclusters", system, "berlin"), "cert-manager"},
	{"definition", objectPath("", "", "applicationdefinitions", "", "wordpress"), "6.7.2"},
	{"gitsync", syncPage, "installations/wordpress.yaml"},
	{"commit", syncPage + "/commit", "team-a.git"},
	{"suspend", syncPage + "/actions/suspend", "Suspend"},
	{"kubernetesapplication", objectPath("", "", "kubernetesapplications", "team-a", "shop"), "berlin"},
	{"installation", installationPage, "2 of 3 replicas"},
	{"tree", installationPage + "/tree", "wordpress-7d9c6b5f48-4hj8z"},
	{"revisions", installationPage + "/revisions", "Revision 4"},
	{"values", webPage + "/values", "replicas"},
	{"manifests", webPage + "/manifests", "Manifests"},
	{"diff", webPage + "/diff", "differs"},
	{"rights", webPage + "/rights", "What you may do with it"},
	{"upgrade", webPage + "/actions/upgrade", "Values"},
	{"upgrade-review", webPage + "/actions/upgrade?step=review&version=1.1.0", "what happens"},
	{"uninstall", webPage + "/actions/uninstall", "Uninstall"},
	{"application", objectPath(system, "berlin", "applications", "blog", "wordpress"), "2 of 3 replicas"},
	{"logs", "/logs/" + system + "/berlin/blog/wordpress-7d9c6b5f48-4hj8z", "AH00094"},
	{"nothing", objectPath("", "", "gitsyncs", system, "nothing"), "nothing"},
}

// expectsOfPages has it be no fault that an object does not exist.
func (b *tab) expectsOfPages() { b.expects("/gitsyncs/" + system + "/nothing") }

// Every page is accessible, in a wide window and a narrow one, light and dark.
func TestPages_accessible(t *testing.T) {
	w := fleet(t)
	b := open(t, start(t, w.hub.RESTConfig(), system))
	b.expectsOfPages()
	for _, page := range pages {
		t.Run(page.name, func(t *testing.T) {
			b.t = t
			b.size(1280, 900)
			b.visit(page.path)
			b.await("document.body.textContent.includes(" + quoted(page.has) + ")")
			require.NotContains(t, b.text(), "never-shown-to-anybody", "the content of a Secret")
			for _, dark := range []bool{false, true} {
				b.scheme(dark)
				b.check()
			}
			b.size(320, 700)
			b.check()
		})
	}
	b.t = t
}

// Everything but live updates works without JavaScript.
func TestPages_withoutJavaScript(t *testing.T) {
	w := fleet(t)
	b := open(t, start(t, w.hub.RESTConfig(), system))
	b.expectsOfPages()
	b.withoutScript()
	for _, page := range pages {
		b.visit(page.path)
		assert.Contains(t, b.html(), page.has, page.path)
	}
	b.visit("/")
	b.submit("#search", "wordpress-no-such")
	assert.Contains(t, b.html(), "Nothing has that in its name")
}
