package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/mask"
	"waybill.dev/waybill/sync/deliver/apply"
	"waybill.dev/waybill/sync/deliver/release"
	"waybill.dev/waybill/test/env"
)

// secrets are on no page: values that a chart marks, and the data of Secrets.
var secrets = []string{
	"hunter2-own", "hunter2-next", "hunter2-block", "hunter2-default", "hunter2-version", "hunter2-placed", "hunter2-older", "of-the-chart", "hunter2-data", "aHVudGVyMi1kYXRh", "key-of-a-secret",
}

// What a chart marks as secret, and the data of a Secret, is on no page, whether it is set by an installation, a definition, or
// either in a file or in a template, and whether a chart has put it into an object that is no Secret.
func TestPages_showNothingSecret(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	d := shop(t, "web-"+ns)
	d.Spec.DefaultValues = valuesOf(`{"title": "Default", "admin": {"password": "hunter2-default"}}`)
	d.Spec.Versions[0].Template.Values = valuesOf(`{"admin": {"password": "hunter2-version"}}`)
	inst := installationOf(d, ns, map[string]any{"title": "Old", "admin": map[string]any{"password": "hunter2-own"}})
	inst.Spec.ValuesFrom = []v1alpha1.ValuesReference{{Kind: "Secret", Name: "more", Key: "values.yaml"}}
	inst.Status.Release, inst.Status.History = revised(t, api, ns)
	placed := placedInstallation(ns, d.Name)
	gs := committed(t, map[string]string{
		"web.yaml":        installationFile(ns, "web", d.Name, "values: {title: New, admin: {password: hunter2-next}}"),
		"block.yaml":      installationFile(ns, "block", d.Name, "valuesBlock: |\n    # why\n    admin: {password: hunter2-block}\n"),
		"definition.yaml": "apiVersion: apps.waybill.dev/v1alpha1\nkind: ApplicationDefinition\nmetadata: {name: " + d.Name + "}\nspec: {defaultValues: {title: Other, admin: {password: hunter2-block}}, versions: [{version: 1.1.0}]}\n",
		"placed.yaml":     jsonOf(t, placed),
		"secret.yaml":     "apiVersion: v1\nkind: Secret\nmetadata: {name: plain, namespace: " + ns + "}\nstringData: {password: hunter2-data}\n",
	})
	gs.Namespace, gs.Name = ns, "team"
	user := cluster(ns, "berlin")
	user.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "berlin"}
	placed.Spec.ClusterName = "berlin"
	owner := apply.Owner{HubID: "hub", Kind: v1alpha1.GitSyncKind, Namespace: ns, Name: "team"}
	for _, o := range []client.Object{d, inst, placed} {
		o.SetAnnotations(map[string]string{v1alpha1.OwnerAnnotation: owner.String()})
	}
	inst.Annotations[mask.LastApplied] = `{"spec": {"values": {"admin": {"password": "hunter2-own"}}}}`
	more := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "more"}, Data: map[string][]byte{"values.yaml": []byte("apiKey: key-of-a-secret\n")}}
	more.Labels = map[string]string{"apps.waybill.dev/values": "protected"}
	c := create(t, api, d, inst, placed, gs, user)
	require.NoError(t, c.Create(t.Context(), more))
	require.NoError(t, c.Create(t.Context(), kubeconfigOf(ns, "berlin", api.Kubeconfig())))
	ca, err := env.CA()
	require.NoError(t, err)
	git := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "git"}, Data: map[string][]byte{"ca.crt": ca}}
	require.NoError(t, c.Create(t.Context(), git))
	deliversAs(t, c, ns)

	b := open(t, api.RESTConfig(), ns)
	page, sync := objectLink("", "", "applicationinstallations", ns, "web"), objectLink("", "", "gitsyncs", ns, "team")
	app, definition := objectLink("", "", "kubernetesapplications", ns, "shop"), objectLink("", "", "applicationdefinitions", "", d.Name)
	upgrade := url.Values{"step": {"review"}, "version": {"1.1.0"}, "values": {"title: New\nadmin: {password: '***'}\n"}}
	create := url.Values{"step": {"review"}, "version": {"1.1.0"}, "namespace": {ns}, "name": {"other"}}
	for _, tc := range []struct{ reason, path, has string }{
		{"the object has its values elsewhere", page, "see the page Values"},
		{"every layer", page + "/values", "admin.password"},
		{"what the chart has put elsewhere", page + "/manifests", "login: admin:***"},
		{"of the release that is there", page + "/diff", "***"},
		{"of Helm's records", page + "/revisions?from=1&to=2", "password: '*** (before)'"},
		{"names alone", page + "/tree", "web"},
		{"what was set", page + "/actions/upgrade", "password: '***'"},
		{"the change, and what comes of it", "POST " + page + "/actions/upgrade", "in place of 1.0.0"},
		{"the change back", page + "/actions/rollback?step=review&revision=1&keepValues=true", "Roll back"},
		{"names alone", page + "/actions/uninstall", "Uninstall"},
		{"an installation, a definition, a template and a Secret, as files", sync + "/manifests", "title: New"},
		{"how these differ", sync + "/diff", "password: '*** (after)'"},
		{"nothing of its files", sync + "/commit", "team.git"},
		{"a template", app, "***"},
		{"how a template differs", app + "/diff", "***"},
		{"values of all, and of a version", definition, "password: '***'"},
		{"the form", "/catalog/" + d.Name + "/install", "Title of the page"},
		{"values that others have set come with it", "POST /catalog/" + d.Name + "/install", "what would be created"},
		{"names alone", "/search?q=web", "web"},
	} {
		var got answer
		if path, posted := strings.CutPrefix(tc.path, "POST "); posted {
			form := upgrade
			if strings.HasPrefix(path, "/catalog") {
				form = create
			}
			got = b.post(path, form)
		} else {
			got = b.get(path)
		}
		require.Equal(t, http.StatusOK, got.status, "%s: %s", tc.path, got.text())
		assert.Contains(t, got.text(), tc.has, "%s: %s", tc.reason, tc.path)
		assert.NotContains(t, got.text(), "t is not known", tc.path)
		for _, secret := range secrets {
			assert.NotContains(t, got.text(), secret, "%s: %s", tc.reason, tc.path)
		}
	}
}

func valuesOf(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }

func jsonOf(t *testing.T, object any) string {
	t.Helper()
	text, err := json.Marshal(object)
	require.NoError(t, err)
	return string(text)
}

func installationFile(namespace, name, definition, values string) string {
	return fmt.Sprintf("apiVersion: apps.waybill.dev/v1alpha1\nkind: ApplicationInstallation\nmetadata: {name: %s, namespace: %s}\nspec:\n  applicationRef: {name: %s, version: 1.0.0}\n  %s\n", name, namespace, definition, values)
}

// placedInstallation returns a KubernetesApplication whose template is an installation.
func placedInstallation(namespace, definition string) *v1alpha1.KubernetesApplication {
	template := v1alpha1.ObjectTemplate{}
	inst := fmt.Sprintf(`{"apiVersion": "apps.waybill.dev/v1alpha1", "kind": "ApplicationInstallation", "metadata": {"name": "placed", "namespace": %q},
		"spec": {"applicationRef": {"name": %q, "version": "1.0.0"}, "values": {"admin": {"password": "hunter2-placed"}}}}`, namespace, definition)
	if err := json.Unmarshal([]byte(inst), &template); err != nil {
		panic(err) // it is written above
	}
	app := &v1alpha1.KubernetesApplication{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KubernetesApplicationKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"},
	}
	app.Spec.ClusterSelector = &metav1.LabelSelector{}
	app.Spec.ResourceTemplates = []v1alpha1.ResourceTemplate{{
		Metadata: v1alpha1.ResourceTemplateMetadata{Name: "web"}, Spec: v1alpha1.ResourceTemplateSpec{Template: template},
	}}
	return app
}

// committed returns a GitSync of a repository with files.
func committed(t *testing.T, files map[string]string) *v1alpha1.GitSync {
	t.Helper()
	server, err := env.StartGitServer(env.GitOptions{})
	require.NoError(t, err)
	t.Cleanup(server.Stop)
	repo, err := server.CreateRepo(t.Context(), "team")
	require.NoError(t, err)
	_, err = repo.Commit(t.Context(), files)
	require.NoError(t, err)
	commit, err := repo.Git(t.Context(), "rev-parse", "HEAD")
	require.NoError(t, err)
	gs := &v1alpha1.GitSync{Spec: v1alpha1.GitSyncSpec{URL: repo.URL(), SecretRef: &v1alpha1.LocalReference{Name: "git"}}}
	gs.Status.Revision, gs.Status.AttemptedRevision = "main@sha1:"+commit, "main@sha1:"+commit
	return gs
}

// deliversAs lets the ServiceAccount that delivers in a namespace do everything.
func deliversAs(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "deliver-" + namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "default"}},
	}
	require.NoError(t, c.Create(t.Context(), binding))
}

// target is where the release engine works.
type target struct {
	config    *rest.Config
	discovery discovery.CachedDiscoveryInterface
}

func (t *target) Config() *rest.Config                          { return t.config }
func (t *target) Discovery() discovery.CachedDiscoveryInterface { return t.discovery }
func (t *target) Mapper() meta.RESTMapper {
	return restmapper.NewDeferredDiscoveryRESTMapper(t.discovery)
}

// revised installs release web twice with Helm, and returns what the status says of that: passwords and titles differ.
func revised(t *testing.T, api *env.Cluster, namespace string) (*v1alpha1.ReleaseStatus, []v1alpha1.InstallationRecord) {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(api.RESTConfig())
	require.NoError(t, err)
	at := &target{config: api.RESTConfig(), discovery: memory.NewMemCacheClient(client)}
	owner := apply.Owner{HubID: "", Kind: v1alpha1.ApplicationInstallationKind, Namespace: namespace, Name: "web"}
	wanted := release.Desired{
		Identity: release.Identity{Namespace: namespace, Name: "web", Owner: owner.String(), OwnerHash: owner.Hash()},
		Chart: &chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: "web", Version: "1.0.0"}, Templates: []*chart.File{{
			Name: "templates/page.yaml",
			Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {title: {{ .Values.title | quote }}, login: {{ printf \"admin:%s\" .Values.admin.password | quote }}}\n"),
		}}},
	}
	var known *v1alpha1.ReleaseStatus
	var history []v1alpha1.InstallationRecord
	for i, v := range []struct{ title, password, version string }{{"Older", "hunter2-older", "1.1.0"}, {"Old", "hunter2-own", "1.0.0"}} {
		wanted.Known, wanted.ChartDigest = known, fmt.Sprint("sha256:", i)
		wanted.Values = map[string]any{"title": v.title, "admin": map[string]any{"password": v.password}}
		result, err := release.NewEngine().Ensure(t.Context(), at, wanted)
		require.NoError(t, err)
		known = &result.Release
		history = append([]v1alpha1.InstallationRecord{{Revision: known.Revision, Version: v.version, Outcome: v1alpha1.InstallationDeployed, FinishedAt: metav1.Now()}}, history...)
	}
	return known, history
}
