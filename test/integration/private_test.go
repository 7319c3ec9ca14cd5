package integration_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/hub"
)

// privateApplication serves a chart in two versions from a repository that asks for a password, and returns a
// definition of it and the Secret of the system namespace that it names, both of that name.
func privateApplication(t *testing.T, name string) (*v1alpha1.ApplicationDefinition, *corev1.Secret) {
	t.Helper()
	charts, err := env.StartHelmRepo(env.Access{Username: "platform", Password: "secret-word", TLS: true})
	require.NoError(t, err)
	t.Cleanup(charts.Stop)
	definition := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, version := range []string{"1.0.0", "2.0.0"} {
		_, err = charts.Push("../../examples/charts/web", func(c *chart.Chart) {
			c.Metadata.Name, c.Metadata.Version, c.Schema = "private", version, nil
			c.Templates = []*chart.File{{Name: "templates/cm.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: installed}\ndata: {version: {{ .Chart.Version }}}\n")}}
		})
		require.NoError(t, err)
		definition.Spec.Versions = append(definition.Spec.Versions, v1alpha1.ApplicationVersion{
			Version: version, Template: &v1alpha1.ApplicationTemplate{Source: v1alpha1.ApplicationSource{Helm: &v1alpha1.HelmSource{
				URL: charts.URL(), ChartName: "private", ChartVersion: version,
				Credentials: &v1alpha1.SourceCredentials{SecretRef: v1alpha1.LocalReference{Name: name}},
			}}},
		})
	}
	return definition, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v1alpha1.DefaultSystemNamespace, Name: name, Annotations: map[string]string{v1alpha1.SecretTypeAnnotation: "helm"},
		},
		Data: map[string][]byte{"username": []byte("platform"), "password": []byte("secret-word"), "ca.crt": hub.Authority(t)},
	}
}
