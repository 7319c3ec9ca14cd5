package applicationinstallation_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/hub"
)

// thing is a CRD of the test, whose objects have these fields.
func (w *world) thing(fields string) *chart.File {
	group := w.Namespace + ".example.com"
	return &chart.File{Name: "crds/things.yaml", Data: []byte("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" +
		"metadata: {name: things." + group + "}\nspec:\n  group: " + group + "\n  scope: Namespaced\n" +
		"  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}\n" +
		"  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {" + fields + "}}}}}}]\n")}
}

// C61: a chart with a CRD that belongs to another installation does not replace it: it is not installed, says whose the
// CRD is and how to go on, and the other installation is left as it is.
func TestInstallation_bringsACRDOfAnother(t *testing.T) {
	w := newWorld(t)
	for version, fields := range map[string]string{"1.0.0-": "one: {type: string}", "1.1.0-": "one: {type: string}, two: {type: string}"} {
		_, err := w.repo.Push(charts+"web", func(c *chart.Chart) {
			c.Metadata.Version, c.Schema, c.Files = version+w.Namespace, nil, []*chart.File{w.thing(fields)}
			c.Templates = []*chart.File{{Name: "templates/one.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"{{ .Release.Name }}\"}\n")}}
		})
		require.NoError(t, err)
	}
	w.define(func(d *v1alpha1.ApplicationDefinitionSpec) {
		for i := range d.Versions {
			d.Versions[i].Template.Source = w.webSource(d.Versions[i].Version + "-" + w.Namespace)
		}
	})
	first := hub.AwaitReady(w.World, w.install(nil))
	other := &v1alpha1.ApplicationInstallation{ObjectMeta: objectMeta("other")}
	other.Spec.ApplicationRef = v1alpha1.ApplicationReference{Name: w.Namespace, Version: "1.1.0"}
	other.Spec.DeployOptions = &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{CRDs: v1alpha1.CRDCreateReplace}}
	w.Create(other)

	message := hub.AwaitReason(w.World, other, v1alpha1.CRDReplacementRefusedReason)
	assert.Contains(t, message, "things."+w.Namespace+".example.com")
	assert.Contains(t, message, "/ApplicationInstallation/"+w.Namespace+"/web", "whose it is")
	assert.Empty(t, w.releases("other"), "nothing else of it is installed")
	assert.EqualValues(t, 1, hub.AwaitReady(w.World, first).Status.Release.Revision)
	client, err := apiextensions.NewForConfig(w.Cluster.RESTConfig())
	require.NoError(t, err)
	crd, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), "things."+w.Namespace+".example.com", metav1.GetOptions{})
	require.NoError(t, err)
	assert.NotContains(t, crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "two")

	hub.Change(w.World, other, func(i *v1alpha1.ApplicationInstallation) {
		i.Spec.DeployOptions.Helm.CRDs = v1alpha1.CRDCreate
	})
	hub.AwaitReady(w.World, other)
}
