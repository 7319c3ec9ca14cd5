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

// K67: an upgrade is shown as a diff, of what is installed as well, before it is written. What the chart marks as secret is on
// no page, and stays what it is.
func TestUpgrade_showsWhatChanges(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	d := shop(t, "web-"+ns)
	inst := installationOf(d, ns, map[string]any{"title": "Old", "admin": map[string]any{"password": "hunter2"}})
	c := create(t, api, d, inst)
	b := open(t, api.RESTConfig(), ns)
	page := objectLink("", "", "applicationinstallations", ns, "web")
	live := func() *v1alpha1.ApplicationInstallation {
		t.Helper()
		now := &v1alpha1.ApplicationInstallation{}
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(inst), now))
		return now
	}

	form := b.get(page + "/actions/upgrade")
	require.Equal(t, http.StatusOK, form.status, form.body)
	for _, text := range []string{"Title of the page", `data-snippet="title: `, "1.0.0 (deprecated)", "1.1.0 (default)", "password: '***'"} {
		assert.Contains(t, form.text(), text)
	}

	wrong := b.post(page+"/actions/upgrade", url.Values{"step": {"review"}, "version": {"1.1.0"}, "values": {"title: New\nreplicas: 21\n"}})
	assert.Equal(t, http.StatusUnprocessableEntity, wrong.status)
	assert.Contains(t, wrong.body, "spec.values.replicas")
	assert.Contains(t, wrong.body, "title: New", "what was written is not lost")
	broken := b.post(page+"/actions/upgrade", url.Values{"step": {"review"}, "version": {"1.1.0"}, "values": {"title: [\n"}})
	assert.Equal(t, http.StatusUnprocessableEntity, broken.status)
	same := b.post(page+"/actions/upgrade", url.Values{"step": {"review"}, "version": {"1.0.0"}, "values": {"admin:\r\n  password: '***'\r\ntitle: Old\r\n"}})
	assert.Contains(t, same.body, "nothing would change")

	review := b.post(page+"/actions/upgrade", url.Values{"step": {"review"}, "version": {"1.1.0"}, "values": {"admin:\n  password: '***'\ntitle: New\n"}})
	require.Equal(t, http.StatusOK, review.status, review.body)
	for _, text := range []string{"+    version: 1.1.0", "+    title: New", "ConfigMap", "+  title: New", "in place of 1.0.0"} {
		assert.Contains(t, review.text(), text)
	}
	assert.Equal(t, int64(1), live().Generation, "nothing is written yet")
	done := b.post(page+"/actions/upgrade", review.hidden())
	require.Equal(t, http.StatusSeeOther, done.status, done.body)
	now := live()
	assert.Equal(t, "1.1.0", now.Spec.ApplicationRef.Version)
	assert.JSONEq(t, `{"title": "New", "admin": {"password": "hunter2"}}`, string(now.Spec.Values.Raw), "the secret stays what it is")

	commented := b.post(page+"/actions/upgrade", url.Values{"step": {"review"}, "version": {"1.1.0"}, "values": {"# why\r\ntitle: Newer\r\n"}})
	require.Equal(t, http.StatusOK, commented.status, commented.body)
	require.Equal(t, http.StatusSeeOther, b.post(page+"/actions/upgrade", commented.hidden()).status)
	assert.Equal(t, "# why\ntitle: Newer\n", live().Spec.ValuesBlock, "comments are kept")

	for _, path := range []string{"", "/values", "/manifests", "/diff", "/actions/upgrade"} {
		got := b.get(page + path)
		require.Equal(t, http.StatusOK, got.status, path)
		assert.NotContains(t, got.body, "hunter2", path)
		assert.NotContains(t, got.body, "of-the-chart", path)
	}
	for _, got := range []answer{form, review, wrong} {
		assert.NotContains(t, got.body, "hunter2")
	}
	values := b.get(page + "/values").body
	for _, text := range []string{"admin.password", "***", "spec.valuesBlock", "chart web 1.1.0"} {
		assert.Contains(t, values, text)
	}
	assert.Contains(t, b.get(page+"/manifests").body, "title: Newer")
}
