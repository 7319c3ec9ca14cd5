package dashboard

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// K66, K67: a version of the catalog is installed from the browser, or handed out as a manifest.
func TestInstall_fromTheCatalog(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	d := shop(t, "web-"+ns)
	d.Status.UsedBy = []v1alpha1.VersionUsage{{Version: "1.0.0", Count: 3, Installations: []string{"a/berlin/team/web"}}}
	gs := syncOf(ns)
	c := create(t, api, d, gs)
	b := open(t, api.RESTConfig(), ns)
	entry := b.get("/catalog/" + d.Name)
	require.Equal(t, http.StatusOK, entry.status, entry.body)
	for _, text := range []string{"deprecated", "default", objectLink("a", "berlin", "applicationinstallations", "team", "web"), "and 2 more"} {
		assert.Contains(t, entry.body, text)
	}
	path := "/catalog/" + d.Name + "/install"
	assert.Contains(t, b.get(path).body, "Title of the page")
	filled := url.Values{"step": {"review"}, "version": {"1.1.0"}, "namespace": {ns}, "name": {"shop"}, "values": {"title: Shop\n"}}
	for field, expected := range map[string]string{
		"name": "Name: fill it in", "namespace": "Namespace: fill it in",
	} {
		form := url.Values{}
		for k, v := range filled {
			form[k] = v
		}
		form.Del(field)
		got := b.post(path, form)
		assert.Equal(t, http.StatusUnprocessableEntity, got.status)
		assert.Contains(t, got.body, expected)
	}
	bad := url.Values{"step": {"apply"}, "version": {"1.1.0"}, "namespace": {ns}, "name": {"Not_A_Name"}, "values": {"title: 3\n"}}
	got := b.post(path, bad)
	assert.Equal(t, http.StatusUnprocessableEntity, got.status)
	assert.Contains(t, got.body, "spec.values.title")
	bad.Set("values", "")
	assert.Contains(t, b.post(path, bad).body, "metadata.name", "what the API server says is wrong, with the field")

	review := b.post(path, filled)
	require.Equal(t, http.StatusOK, review.status, review.body)
	for _, text := range []string{"kind: ApplicationInstallation", "title: Shop", "ConfigMap", objectLink("", "", "gitsyncs", ns, "team")} {
		assert.Contains(t, review.text(), text)
	}
	made := &v1alpha1.ApplicationInstallation{}
	key := client.ObjectKey{Namespace: ns, Name: "shop"}
	require.Error(t, c.Get(t.Context(), key, made), "nothing is created yet")
	done := b.post(path, review.hidden())
	require.Equal(t, http.StatusSeeOther, done.status, done.body)
	require.NoError(t, c.Get(t.Context(), key, made))
	assert.Equal(t, "1.1.0", made.Spec.ApplicationRef.Version)
	assert.Contains(t, b.post(path, review.hidden()).body, "already exists")

	user := open(t, reader(t, api, ns), ns)
	assert.Equal(t, http.StatusNotFound, user.get("/catalog/"+d.Name).status, "they may not list definitions")
}
