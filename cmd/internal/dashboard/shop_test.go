package dashboard

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
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
