package dashboard

import (
	"net/http"
	"net/url"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// K68: every page of an object follows it. Those that render something are not read again: they are told its version.
func TestLive_everyPageOfAnObject(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	b := open(t, api.RESTConfig(), ns)
	for name, tc := range map[string]struct {
		reason, resource string
		versions         bool
	}{
		"values":    {"they are merged in no time", "applicationinstallations", false},
		"revisions": {"they are in the status", "applicationinstallations", false},
		"commit":    {"the repository is kept", "gitsyncs", false},
		"rights":    {"what can be done depends on the object", "gitsyncs", false},
		"manifests": {"a repository is rendered", "gitsyncs", true},
		"diff":      {"a repository is rendered, and compared", "gitsyncs", true},
	} {
		t.Run(name, func(t *testing.T) {
			b.t = t
			object := client.Object(&v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: v1alpha1.GitSyncSpec{URL: "https://127.0.0.1:1/team.git"}})
			if tc.resource == "applicationinstallations" {
				object = &v1alpha1.ApplicationInstallation{
					ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
					Spec:       v1alpha1.ApplicationInstallationSpec{ApplicationRef: v1alpha1.ApplicationReference{Name: "web", Version: "1.0.0"}},
				}
			}
			c := create(t, api, object)
			page := objectLink("", "", tc.resource, ns, name) + "/" + name
			shown := b.get(page)
			require.Equal(t, http.StatusOK, shown.status)
			assert.Contains(t, shown.body, `data-object="`+page+`"`, tc.reason)
			events, _ := b.stream(url.Values{"object": {page}})
			if !tc.versions {
				assert.NotContains(t, shown.body, "data-version", tc.reason)
				assert.Equal(t, "change", <-events, tc.reason)
				return
			}
			has := regexp.MustCompile(`data-version="([0-9]+)"`).FindStringSubmatch(shown.body)
			require.NotNil(t, has, tc.reason)
			assert.Equal(t, "versiondata: "+has[1], <-events, "nothing has changed")
			before := object.DeepCopyObject().(client.Object)
			object.SetLabels(map[string]string{"changed": "true"})
			require.NoError(t, c.Patch(t.Context(), object, client.MergeFrom(before)))
			now := "versiondata: " + object.GetResourceVersion()
			awaitEvent(t, events, now, "versiondata: "+has[1])
			require.NoError(t, c.Delete(t.Context(), object))
			awaitEvent(t, events, "change", now)
			assert.Equal(t, http.StatusNotFound, b.get(page).status, "what is read again is not there")
		})
	}
}

// What may be done is not only a matter of the object: its page is read again when rights are reviewed, and only that.
func TestLive_rightsAreReviewed(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	reader(t, api, ns)
	create(t, api, cluster(ns, "berlin"))
	b := openShared(t, account(t, api)).signIn(ns)
	link := objectLink("", "", "kubernetesclusters", ns, "berlin")
	rights, _ := b.stream(url.Values{"object": {link + "/rights"}})
	for range 5 {
		awaitEvent(t, rights, "change")
	}
}

// awaitEvent waits for an event of a stream, which others may precede.
func awaitEvent(t *testing.T, events <-chan string, want string, before ...string) {
	t.Helper()
	for {
		select {
		case event := <-events:
			if event == want {
				return
			}
			require.Contains(t, before, event, "in place of %s", want)
		case <-time.After(limit):
			require.Fail(t, "the page is not told", want)
		}
	}
}

// Who may not read an object any more does not keep what was rendered for it.
func TestLive_costlyPageIsLost(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	name := "gets-" + ns
	config, err := api.AddUser(name)
	require.NoError(t, err)
	allow(t, api, ns, name, rbacv1.PolicyRule{APIGroups: []string{v1alpha1.Group}, Resources: []string{"gitsyncs"}, Verbs: []string{"get"}})
	create(t, api, &v1alpha1.GitSync{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "team"}, Spec: v1alpha1.GitSyncSpec{URL: "https://127.0.0.1:1/team.git"}})
	b := open(t, config, ns)
	page := objectLink("", "", "gitsyncs", ns, "team") + "/manifests"
	require.Equal(t, http.StatusOK, b.get(page).status)
	events, _ := b.stream(url.Values{"object": {page}})
	awaitEvent(t, events, "change", "partialdata: "+quotedNotice(ns)) // which has the page ask whether it may be read
}

func quotedNotice(ns string) string {
	return `"You may not watch gitsyncs.apps.waybill.dev team in namespace ` + ns + ` of hub. Changes are shown when you reload the page."`
}
