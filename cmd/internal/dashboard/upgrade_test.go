package dashboard

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/test/env"
)

// shop returns a definition of a chart that makes a ConfigMap of its values, in two versions.
func shop(t *testing.T, name string) *v1alpha1.ApplicationDefinition {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	repo, err := env.StartHelmRepo(env.Access{})
	require.NoError(t, err)
	t.Cleanup(repo.Stop)
	d := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	d.Spec.DefaultVersion = "1.1.0"
	for _, version := range []string{"1.1.0", "1.0.0"} {
		_, err := repo.Push("../../../examples/charts/web", func(c *chart.Chart) {
			c.Metadata.Version = version
			for _, f := range c.Raw { // which is what is packed
				if f.Name == "values.yaml" {
					f.Data = []byte("title: Hello\nreplicas: 1\nadmin: {password: of-the-chart}\n")
				}
			}
			c.Schema = []byte(`{"type": "object", "properties": {
				"title": {"type": "string", "description": "Title of the page"}, "replicas": {"type": "integer", "maximum": 20},
				"admin": {"type": "object", "properties": {"password": {"type": "string", "format": "password"}}}}}`)
			c.Templates = []*chart.File{{Name: "templates/page.yaml", Data: []byte(
				"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata:\n  title: {{ .Values.title | quote }}\n  version: {{ .Chart.Version | quote }}\n" +
					"  login: {{ printf \"admin:%s\" .Values.admin.password | quote }}\n  key: {{ .Values.apiKey | default \"none\" | quote }}\n")}}
		})
		require.NoError(t, err)
		d.Spec.Versions = append(d.Spec.Versions, v1alpha1.ApplicationVersion{
			Version: version, Deprecated: version == "1.0.0", Template: &v1alpha1.ApplicationTemplate{Source: v1alpha1.ApplicationSource{
				Helm: &v1alpha1.HelmSource{URL: repo.URL(), ChartName: "web", ChartVersion: version},
			}},
		})
	}
	return d
}

func installationOf(d *v1alpha1.ApplicationDefinition, namespace string, values map[string]any) *v1alpha1.ApplicationInstallation {
	inst := &v1alpha1.ApplicationInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	inst.Spec.ApplicationRef = v1alpha1.ApplicationReference{Name: d.Name, Version: "1.0.0"}
	if values != nil {
		raw, _ := json.Marshal(values) // maps and texts always convert
		inst.Spec.Values = &apiextensionsv1.JSON{Raw: raw}
	}
	return inst
}

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

// What git owns is not changed without being told, and the page says where to change it.
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
		assert.NotContains(t, form, "force", "nobody agrees by accident")
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

func TestUninstall_saysWhatGoes(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	d := shop(t, "web-"+ns)
	inst := installationOf(d, ns, nil)
	c := create(t, api, d, inst)
	b := open(t, api.RESTConfig(), ns)
	page := objectLink("", "", "applicationinstallations", ns, "web")
	confirm := b.get(page + "/actions/uninstall")
	require.Equal(t, http.StatusOK, confirm.status, confirm.body)
	assert.Contains(t, confirm.body, "1 deleted")
	require.Equal(t, http.StatusSeeOther, b.post(page+"/actions/uninstall", confirm.hidden()).status)
	assert.True(t, client.IgnoreNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(inst), inst)) == nil && inst.DeletionTimestamp == nil)
	assert.Equal(t, http.StatusNotFound, b.get(page).status)
}

func TestRollback_setsTheVersionAgain(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	d := shop(t, "web-"+ns)
	inst := installationOf(d, ns, nil)
	inst.Spec.ApplicationRef.Version = "1.1.0"
	inst.Status.Release = &v1alpha1.ReleaseStatus{Name: "web", Namespace: ns, Revision: 2}
	inst.Status.History = []v1alpha1.InstallationRecord{
		{Revision: 2, Version: "1.1.0", Outcome: v1alpha1.InstallationDeployed, FinishedAt: metav1.Now()},
		{Revision: 1, Version: "1.0.0", Outcome: v1alpha1.InstallationDeployed, FinishedAt: metav1.Now(), ValuesDigest: "other"},
	}
	c := create(t, api, d, inst)
	b := open(t, api.RESTConfig(), ns)
	page := objectLink("", "", "applicationinstallations", ns, "web")
	timeline := b.get(page + "/revisions").body
	assert.Contains(t, timeline, "Roll back to revision 1")
	assert.NotContains(t, timeline, "Roll back to revision 2", "it is installed")
	assert.Contains(t, b.get(page+"/revisions?from=1&to=2").body, "It is not known: ", "Helm has no record of it")

	lost := b.get(page + "/actions/rollback?step=review&revision=1")
	assert.Equal(t, http.StatusUnprocessableEntity, lost.status)
	assert.Contains(t, lost.body, "Keep the values as they are")
	assert.Equal(t, http.StatusUnprocessableEntity, b.post(page+"/actions/rollback", url.Values{"step": {"review"}, "revision": {"7"}}).status)
	review := b.post(page+"/actions/rollback", url.Values{"step": {"review"}, "revision": {"1"}, "keepValues": {"true"}})
	require.Equal(t, http.StatusOK, review.status, review.body)
	assert.Contains(t, review.text(), "-    version: 1.1.0")
	require.Equal(t, http.StatusSeeOther, b.post(page+"/actions/rollback", review.hidden()).status)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(inst), inst))
	assert.Equal(t, "1.0.0", inst.Spec.ApplicationRef.Version)
}

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

// What users of a cluster write is text on every page.
func TestPages_markupIsText(t *testing.T) {
	const evil = `<img src=x onerror=alert(1)>"'&lt;`
	api := hub(t)
	ns := api.Namespace(t)
	d := shop(t, "web-"+ns)
	d.Spec.DisplayName, d.Spec.Description = evil[:30], evil
	inst := installationOf(d, ns, map[string]any{"title": evil})
	inst.Status.Conditions = ready(metav1.ConditionFalse, evil)
	inst.Status.History = []v1alpha1.InstallationRecord{{Revision: 1, Version: evil, Outcome: v1alpha1.InstallationFailed, Message: evil, FinishedAt: metav1.Now()}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}}}
	gs := syncOf(ns)
	gs.Status.Revision, gs.Status.AttemptedRevision = evil, evil
	runs(t, create(t, api, d, inst, gs), pod)
	b := open(t, api.RESTConfig(), ns)
	page, sync := objectLink("", "", "applicationinstallations", ns, "web"), objectLink("", "", "gitsyncs", ns, "team")
	for _, path := range []string{
		page, page + "/tree", page + "/values", page + "/revisions", page + "/revisions?from=" + url.QueryEscape(evil) + "&to=2", page + "/manifests", page + "/diff", page + "/rights",
		page + "/actions/upgrade", page + "/actions/uninstall", page + "/actions/" + url.PathEscape(evil), sync, sync + "/commit", sync + "/tree",
		"/catalog/" + d.Name, "/catalog/" + d.Name + "/install?name=" + url.QueryEscape(evil), "/catalog/" + url.PathEscape(evil),
		logsLink(types.NamespacedName{}, ns, "web") + "?container=" + url.QueryEscape(evil),
	} {
		got := b.get(path)
		assert.NotContains(t, got.body, "<img src=x", path)
		assert.NotContains(t, got.body, "javascript:", path)
		assert.NotContains(t, got.body, " style=", "the policy would ignore it: "+path)
		assert.NotEqual(t, http.StatusInternalServerError, got.status, path)
		assert.Contains(t, got.body, "<!DOCTYPE html>", path)
	}
	review := b.post("/catalog/"+d.Name+"/install", url.Values{"step": {"review"}, "version": {"1.1.0"}, "namespace": {ns}, "name": {"shop"}, "values": {"title: '" + strings.ReplaceAll(evil, "'", "") + "'\n"}})
	require.Equal(t, http.StatusOK, review.status, review.body)
	assert.NotContains(t, review.body, "<img src=x")
}

// runs creates a Pod, with the ServiceAccount that it needs, which no controller makes here.
func runs(t *testing.T, c client.Client, pod *corev1.Pod) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "default"}}
	require.NoError(t, client.IgnoreAlreadyExists(c.Create(t.Context(), account)))
	require.NoError(t, c.Create(t.Context(), pod))
}

// Logs are read as the user: who may not is told which right is missing.
func TestLogs_asTheUser(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web"}, {Name: "side", Image: "web"}}}}
	runs(t, create(t, api), pod)
	page := logsLink(types.NamespacedName{}, ns, "web")
	assert.Equal(t, "/logs/-/-/"+ns+"/web", page)
	got := open(t, api.RESTConfig(), ns).get(page)
	assert.Equal(t, http.StatusOK, got.status)
	for _, text := range []string{"<option selected>main</option>", "<option>side</option>", `data-follow="`} { // no node runs it, so that it has written nothing
		assert.Contains(t, got.body, text)
	}
	user := open(t, reader(t, api, ns), ns)
	refused := user.get(page)
	assert.Equal(t, http.StatusForbidden, refused.status)
	assert.Contains(t, refused.text(), `cannot get resource "pods"`)
	assert.Equal(t, http.StatusForbidden, user.get(page+"/follow?container=main").status)
}

// The tree is a treegrid and a drawing, with the same objects.
func TestTree_gridAndDrawing(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	gs := syncOf(ns)
	commit := strings.Repeat("ab", 20)
	gs.Spec.URL = "https://github.com/example/team.git"
	gs.Status.Revision, gs.Status.AttemptedRevision = "main@sha1:"+commit, "main@sha1:"+commit
	create(t, api, gs)
	got := open(t, api.RESTConfig(), ns).get(objectLink("", "", "gitsyncs", ns, "team") + "/tree").body
	for _, text := range []string{
		`<tr role="row" aria-level="1" aria-posinset="1" aria-setsize="1" aria-expanded="true" tabindex="0">`, `aria-level="2"`, `tabindex="-1"`,
		"https://github.com/example/team/commit/" + commit, `<svg `, `class="edge"`, "GitSync team in namespace " + ns,
	} {
		assert.Contains(t, got, text)
	}
}
