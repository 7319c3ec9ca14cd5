package main

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// offering returns a Helm repository with the chart web in these versions, changed by change.
func offering(t *testing.T, access env.Access, change func(*chart.Chart), versions ...string) *env.HelmRepo {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	repo, err := env.StartHelmRepo(access)
	require.NoError(t, err)
	t.Cleanup(repo.Stop)
	for _, version := range versions {
		_, err := repo.Push("../../examples/charts/web", func(c *chart.Chart) {
			c.Metadata.Version = version
			if change != nil {
				change(c)
			}
		})
		require.NoError(t, err)
	}
	return repo
}

// definitionOf reads a definition that the program has printed.
func definitionOf(t *testing.T, text string) *v1alpha1.ApplicationDefinition {
	t.Helper()
	d := &v1alpha1.ApplicationDefinition{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), d))
	return d
}

func versionsIn(d *v1alpha1.ApplicationDefinition) []string {
	var names []string
	for _, v := range d.Spec.Versions {
		names = append(names, v.Version)
	}
	return names
}

// K10-K17, K66: a definition of a chart, from a Helm repository, a registry, a folder, or an archive.
func TestCatalogAdd(t *testing.T) {
	repo := offering(t, env.Access{}, nil, "1.0.0", "1.2.0", "1.10.0", "2.0.0-rc.1")
	registry, err := env.StartRegistry(env.Access{})
	require.NoError(t, err)
	t.Cleanup(registry.Stop)
	for _, version := range []string{"0.1.0", "0.2.0"} {
		_, err = registry.Push("../../examples/charts/web", func(c *chart.Chart) { c.Metadata.Version = version })
		require.NoError(t, err)
	}
	archive, err := repo.Push("../../examples/charts/web", func(c *chart.Chart) { c.Metadata.Version, c.Metadata.Description = "3.0.0", "" })
	require.NoError(t, err)
	packed := filepath.Join(t.TempDir(), archive)
	require.NoError(t, os.WriteFile(packed, fetched(t, repo.URL()+"/"+archive), 0o600))

	for reason, tc := range map[string]struct {
		args     []string
		versions []string
		source   v1alpha1.HelmSource
	}{
		"a repository": {[]string{repo.URL(), "web", "--version", "1.10.0", "--all-versions", "2"}, []string{"1.10.0", "1.2.0"},
			v1alpha1.HelmSource{URL: repo.URL(), ChartName: "web", ChartVersion: "1.10.0"}},
		"a pre-release by its name": {[]string{repo.URL(), "web", "--version", "2.0.0-rc.1"}, []string{"2.0.0-rc.1"},
			v1alpha1.HelmSource{URL: repo.URL(), ChartName: "web", ChartVersion: "2.0.0-rc.1"}},
		"a registry": {[]string{registry.URL() + "/web", "--plain-http", "--all-versions", "9"}, []string{"0.2.0", "0.1.0"},
			v1alpha1.HelmSource{URL: registry.URL(), ChartName: "web", ChartVersion: "0.2.0", PlainHTTP: true}},
		"a folder": {[]string{"../../examples/charts/web", "--url", "oci://registry.example.com/charts", "--secret", "registry"}, []string{"1.1.0"},
			v1alpha1.HelmSource{URL: "oci://registry.example.com/charts", ChartName: "web", ChartVersion: "1.1.0",
				Credentials: &v1alpha1.SourceCredentials{SecretRef: v1alpha1.LocalReference{Name: "registry"}}}},
		"an archive": {[]string{packed, "--url", repo.URL()}, []string{"3.0.0"},
			v1alpha1.HelmSource{URL: repo.URL(), ChartName: "web", ChartVersion: "3.0.0"}},
	} {
		t.Run(reason, func(t *testing.T) {
			got := waybillWith(t, "", append([]string{"catalog", "add"}, tc.args...)...)
			require.Equal(t, 0, got.code, got.errOut)
			d := definitionOf(t, got.out)
			assert.Equal(t, "web", d.Name)
			assert.Equal(t, "https://nginx.org", d.Spec.DocumentationURL)
			assert.Equal(t, tc.versions, versionsIn(d))
			assert.Equal(t, tc.versions[0], d.Spec.DefaultVersion)
			assert.Equal(t, tc.source, *d.Spec.Versions[0].Template.Source.Helm)
			checked := waybillWith(t, got.out, "validate", "-")
			assert.Equal(t, 0, checked.code, checked.out+checked.errOut)
		})
	}
	_, err = repo.Push("../../examples/charts/web", func(c *chart.Chart) { c.Metadata.Name, c.Schema = "open", nil })
	require.NoError(t, err)
	got := waybillWith(t, "", "catalog", "add", repo.URL(), "open")
	assert.Equal(t, "warning: values of chart open 1.1.0 are checked only when it is rendered, not at admission: it has no values.schema.json\n", got.errOut)
	got = waybillWith(t, "", "catalog", "add", repo.URL(), "web", "--name", "page", "--description", "Pages.")
	assert.Empty(t, got.errOut, "its schema can be checked")
	d := definitionOf(t, got.out)
	assert.Equal(t, "page Pages. 3.0.0", d.Name+" "+d.Spec.Description+" "+d.Spec.DefaultVersion)

	cluster := hub(t)
	name := "catalog-" + cluster.Namespace(t)
	got = waybill(t, cluster, "catalog", "add", repo.URL(), "web", "--name", name, "--apply")
	require.Equal(t, 0, got.code, got.errOut)
	create := func() result {
		return waybill(t, cluster, "catalog", "add", repo.URL(), "web", "--name", name, "--apply")
	}
	assert.Contains(t, create().errOut, "there is one already: waybill catalog bump "+name+" adds versions to it")
	c := clientOf(t, cluster)
	d = &v1alpha1.ApplicationDefinition{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: name}, d))
	assert.Equal(t, []string{"3.0.0"}, versionsIn(d))
	require.NoError(t, c.Delete(t.Context(), d))
}

const (
	picture = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><style>.a{fill:url(#g)}</style><path class="a" d="M0 0"/></svg>`
	pixel   = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

// C25: an icon is embedded if it can do no harm, and is left out otherwise.
func TestCatalogAdd_icons(t *testing.T) {
	png, err := base64.StdEncoding.DecodeString(pixel)
	require.NoError(t, err)
	for reason, tc := range map[string]struct {
		content string
		elsewhere,
		format, says string
	}{
		"a picture":                  {content: picture, format: "svg+xml"},
		"pixels":                     {content: string(png), format: "png"},
		"a script":                   {content: strings.Replace(picture, "<path", "<script>alert(1)</script><path", 1), says: "has an element script"},
		"a handler":                  {content: strings.Replace(picture, "<path", `<path onload="alert(1)"`, 1), says: "has an attribute onload"},
		"another page":               {content: strings.Replace(picture, "<path", `<foreignObject/><path`, 1), says: "has an element foreignObject"},
		"a page of another kind":     {content: strings.Replace(picture, "<path", `<h:body xmlns:h="http://www.w3.org/1999/xhtml"/><path`, 1), says: "has an element body"},
		"a link":                     {content: strings.Replace(picture, "<path", `<use href="https://example.com/x.svg#a"/><path`, 1), says: "links to other files"},
		"a style that loads":         {content: strings.Replace(picture, "url(#g)", "url(https://example.com/x)", 1), says: "loads other files"},
		"a style that imports":       {content: strings.Replace(picture, ".a{", "@import 'x';.a{", 1), says: "loads other files"},
		"entities":                   {content: `<!DOCTYPE svg [<!ENTITY a "b">]>` + picture, says: "declares entities"},
		"not the end":                {content: strings.TrimSuffix(picture, "</svg>"), says: "cannot be read"},
		"text":                       {content: "GIF89a", says: "neither PNG nor SVG"},
		"too much":                   {content: picture + strings.Repeat(" ", 64<<10), says: "MaxIconBytes"},
		"an address of this machine": {elsewhere: "https://127.0.0.1:1/icon.png", says: "sources may not be there"},
		"an address without TLS":     {elsewhere: "http://example.com/icon.png", says: "is not an https address"},
	} {
		t.Run(reason, func(t *testing.T) {
			icon := tc.elsewhere
			repo := offering(t, env.Access{}, nil)
			if icon == "" {
				icon = repo.URL() + "/icon"
				require.NoError(t, repo.Write("icon", []byte(tc.content)))
			}
			_, err := repo.Push("../../examples/charts/web", func(c *chart.Chart) { c.Metadata.Icon = icon })
			require.NoError(t, err)
			got := waybillWith(t, "", "catalog", "add", repo.URL(), "web")
			require.Equal(t, 0, got.code, got.errOut)
			d := definitionOf(t, got.out)
			if tc.says != "" {
				assert.Nil(t, d.Spec.Logo)
				assert.Contains(t, got.errOut, "warning: the icon is left out: ")
				assert.Contains(t, got.errOut, tc.says)
				return
			}
			require.NotNil(t, d.Spec.Logo, got.errOut)
			assert.Equal(t, tc.format, d.Spec.Logo.Format)
			assert.Equal(t, tc.content, string(d.Spec.Logo.Data))
		})
	}
}

// K5, K18: a private repository is read with credentials of the command line, or of the hub.
func TestCatalog_credentials(t *testing.T) {
	repo := offering(t, env.Access{Username: "reader", Password: "secret-word", TLS: true}, nil, "1.0.0")
	ca, err := env.CA()
	require.NoError(t, err)
	cluster := hub(t)
	namespace := cluster.Namespace(t)
	create(t, clientOf(t, cluster), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "charts", Annotations: map[string]string{v1alpha1.SecretTypeAnnotation: "helm"}},
		Data:       map[string][]byte{"username": []byte("reader"), "password": []byte("secret-word"), "ca.crt": ca},
	})
	got := waybill(t, cluster, "catalog", "add", repo.URL(), "web", "--secret", "charts", "--system-namespace", namespace)
	require.Equal(t, 0, got.code, got.errOut)
	assert.NotContains(t, got.out, "secret-word")
	file := filepath.Join(t.TempDir(), "web.yaml")
	require.NoError(t, os.WriteFile(file, []byte(got.out), 0o600))
	_, err = repo.Push("../../examples/charts/web", func(c *chart.Chart) { c.Metadata.Version = "1.0.1" })
	require.NoError(t, err)
	got = waybill(t, cluster, "catalog", "bump", "-f", file, "--system-namespace", namespace)
	assert.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, ": added 1.0.1\n")

	create(t, clientOf(t, cluster), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "authorities"}, Data: map[string][]byte{"ca.crt": ca}})
	open := offering(t, env.Access{TLS: true}, nil, "1.0.0")
	got = waybill(t, cluster, "catalog", "add", open.URL(), "web", "--ca-secret", "authorities", "--system-namespace", namespace)
	require.Equal(t, 0, got.code, got.errOut)
	assert.Equal(t, "authorities", definitionOf(t, got.out).Spec.Versions[0].Template.Source.Helm.CASecretRef.Name)

	got = waybill(t, cluster, "catalog", "bump", "-f", file, "--system-namespace", "none")
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "get Secret none/charts", got.errOut)
	assert.Contains(t, got.errOut, "or give --username and --password-stdin")
	got = waybillWith(t, "", "catalog", "add", repo.URL(), "web", "--username", "reader")
	assert.Contains(t, got.errOut, "--username and --password-stdin go together")
}

// What cannot be a definition says why.
func TestCatalog_refuses(t *testing.T) {
	repo := offering(t, env.Access{}, nil, "1.0.0")
	file := filepath.Join(t.TempDir(), "flow.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`{apiVersion: apps.waybill.dev/v1alpha1, kind: ApplicationDefinition, metadata: {name: web}, spec: {versions: [{version: 0.9.0, `+
		`template: {source: {helm: {url: "`+repo.URL()+`", chartName: web, chartVersion: 0.9.0}}}}]}}`), 0o600))
	for reason, tc := range map[string]struct {
		args []string
		want string
	}{
		"no chart":             {[]string{"add", repo.URL()}, "which chart of " + repo.URL() + "? name it"},
		"a chart that is none": {[]string{"add", repo.URL(), "wed"}, "repository has no chart wed; it has the charts web"},
		"a version of none":    {[]string{"add", repo.URL(), "web", "--version", "7.0.0"}, "chart web has no version 7.0.0: its newest are 1.0.0"},
		"a folder alone":       {[]string{"add", "../../examples/charts/web"}, "say with --url which repository Waybill gets it from"},
		"too many versions":    {[]string{"add", repo.URL(), "web", "--all-versions", "101"}, "--all-versions must be from 1 to 100"},
		"nothing to bump":      {[]string{"bump"}, "name a definition of the hub, or files with -f"},
		"no range":             {[]string{"bump", "-f", file, "--constraint", "x y"}, "--constraint x y is not a range of versions"},
		"a file without any":   {[]string{"bump", "-f", "testdata/databases.yaml"}, "has no ApplicationDefinition"},
		"versions in one line": {[]string{"bump", "-f", file}, "spec.versions is not a list of lines that begin with a dash"},
		"neither":              {nil, "choose one of add and bump"},
	} {
		t.Run(reason, func(t *testing.T) {
			got := waybillWith(t, "", append([]string{"catalog"}, tc.args...)...)
			assert.Equal(t, 2, got.code, got.out)
			assert.Contains(t, got.errOut, tc.want)
		})
	}
}
