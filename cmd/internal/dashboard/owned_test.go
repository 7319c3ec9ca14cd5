package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// What is to be changed instead is a link where the repository is on a host whose addresses are known.
func TestActions_leadToTheFileInGit(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	d := shop(t, "web-"+ns)
	inst, gs := installationOf(d, ns, nil), syncOf(ns)
	gs.Spec.URL, gs.Status.AttemptedRevision = "https://github.example/team.git", attempted
	owner := apply.Owner{HubID: "hub", Kind: v1alpha1.GitSyncKind, Namespace: ns, Name: "team"}
	inst.Annotations = map[string]string{v1alpha1.OwnerAnnotation: owner.String()}
	create(t, api, d, gs, inst)
	b := open(t, api.RESTConfig(), ns)
	standIn(t, b.server, gs.Spec.URL, map[string]string{"apps/web.yaml": fmt.Sprintf(
		"apiVersion: apps.waybill.dev/v1alpha1\nkind: ApplicationInstallation\nmetadata: {name: %s, namespace: %s}\nspec: {applicationRef: {name: %s, version: 1.0.0}}\n", inst.Name, ns, d.Name,
	)})
	got := b.get(objectLink("", "", "applicationinstallations", ns, inst.Name) + "/actions/uninstall").text()
	_, commit, _ := strings.Cut(attempted, "sha1:")
	assert.Contains(t, got, `Change <a href="https://github.example/team/blob/`+commit+`/apps/web.yaml" rel="noreferrer">apps/web.yaml of https://github.example/team.git</a> instead`)
}

// Git puts back whether something is suspended only where it says so.
func TestActions_suspendWhatGitNames(t *testing.T) {
	api := hub(t)
	for name, tc := range map[string]struct {
		reason string
		spec   map[string]any
		warns  bool
	}{
		"Named":   {"the manifest has the field", map[string]any{"url": "https://127.0.0.1:1/team.git", "suspend": false}, true},
		"LeftOut": {"the field belongs to who sets it", map[string]any{"url": "https://127.0.0.1:1/team.git"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			ns := api.Namespace(t)
			owner := apply.Owner{HubID: "hub", Kind: v1alpha1.GitSyncKind, Namespace: ns, Name: "catalog"}
			wanted := &unstructured.Unstructured{Object: map[string]any{"spec": tc.spec}}
			wanted.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.GitSyncKind))
			wanted.SetNamespace(ns)
			wanted.SetName("team")
			wanted.SetAnnotations(map[string]string{v1alpha1.OwnerAnnotation: owner.String()})
			c := create(t, api)
			require.NoError(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(wanted), client.FieldOwner(v1alpha1.FieldManager)))
			b := open(t, api.RESTConfig(), ns)
			page := objectLink("", "", "gitsyncs", ns, "team") + "/actions/suspend"
			review := b.get(page)
			require.Equal(t, http.StatusOK, review.status, review.body)
			assert.Equal(t, tc.warns, strings.Contains(review.text(), "is delivered by GitSync "+ns+"/catalog, which puts back what git says"), tc.reason)
			status := http.StatusSeeOther
			if tc.warns {
				status = http.StatusConflict
			}
			assert.Equal(t, status, b.post(page, review.hidden()).status, tc.reason)
		})
	}
}
