package dashboard

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
)

// What git owns is not changed without a warning, and the page says where to change it.
func TestActions_onWhatGitOwns(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	d := shop(t, "web-"+ns)
	inst := installationOf(d, ns, nil)
	owner := apply.Owner{HubID: "hub", Kind: v1alpha1.GitSyncKind, Namespace: ns, Name: "team"}
	inst.Annotations = map[string]string{v1alpha1.OwnerAnnotation: owner.String()}
	c := create(t, api, d, syncOf(ns), inst)
	b := open(t, api.RESTConfig(), ns)
	page := objectLink("", "", "applicationinstallations", ns, "web")
	upgrade := url.Values{"step": {"review"}, "version": {"1.1.0"}, "values": {""}}
	for action, review := range map[string]answer{
		"/actions/upgrade": b.post(page+"/actions/upgrade", upgrade), "/actions/uninstall": b.get(page + "/actions/uninstall"),
	} {
		require.Equal(t, http.StatusOK, review.status, review.body)
		assert.Contains(t, review.body, "is delivered by GitSync "+ns+"/team, which puts back what git says")
		assert.Contains(t, review.body, "https://127.0.0.1:1/team.git", "where to change it")
		form := review.hidden()
		assert.NotContains(t, form, "force", "the box is not checked by default")
		got := b.post(page+action, form)
		assert.Equal(t, http.StatusConflict, got.status)
		assert.Contains(t, got.body, "nothing was done")
	}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(inst), inst))
	assert.Equal(t, "1.0.0", inst.Spec.ApplicationRef.Version)

	review := b.post(page+"/actions/upgrade", upgrade)
	assert.Contains(t, review.body, "kind: ApplicationInstallation", "the manifest, to be committed")
	form := review.hidden()
	form.Set("force", "true")
	require.Equal(t, http.StatusSeeOther, b.post(page+"/actions/upgrade", form).status)
	assert.NotContains(t, b.get(page+"/actions/reconcile").body, "puts back", "it changes nothing that git says")
	tree := b.get(page + "/tree").body
	assert.Contains(t, tree, objectLink("", "", "gitsyncs", ns, "team"), "what it comes from")
}
