package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
)

// An object of a kind that the cluster does not offer cannot be created, unless the kind is defined
// by what is applied with it.
func TestDiff_kindThatIsNotOffered(t *testing.T) {
	cluster := hub(t)
	file := filepath.Join(t.TempDir(), "db.yaml")
	manifest := "{apiVersion: databases.example.com/v1, kind: Database, metadata: {name: db, namespace: default}}\n"
	require.NoError(t, os.WriteFile(file, []byte(manifest), 0o600))

	got := waybill(t, cluster, "diff", "-f", file)
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Regexp(t, `^# Database.databases.example.com default/db in \S+: refused: the cluster does not offer this kind, and nothing that would be applied defines it\n$`, got.out)
	assert.Contains(t, got.errOut, "0 created, 0 changed, 0 deleted, 1 refused")

	got = waybill(t, cluster, "diff", "-f", file, "-f", "testdata/databases.yaml")
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.errOut, "4 created, 0 changed, 0 deleted, 0 refused", got.out)
}

// C57: an application may define a kind and have objects of it, in its templates.
func TestDiff_kindThatATemplateDefines(t *testing.T) {
	h, u := hub(t), user(t)
	c, namespace, target := clientOf(t, h), h.Namespace(t), u.Namespace(t)
	engage(t, c, namespace, "berlin", u.Kubeconfig())
	object := func(kind string) string {
		return `{"apiVersion":"tables.example.com/v1","kind":"` + kind + `","metadata":{"namespace":"` + target + `","name":"one"}}`
	}
	app := &v1alpha1.KubernetesApplication{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tables"},
		Spec: v1alpha1.KubernetesApplicationSpec{
			ClusterName: "berlin", ClusterSelector: &metav1.LabelSelector{},
			ResourceTemplates: []v1alpha1.ResourceTemplate{
				templateOf(t, "tables-chair", object("Chair")),
				templateOf(t, "tables-table", object("Table")),
				templateOf(t, "tables-crd", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
					"metadata":{"name":"tables.tables.example.com"},
					"spec":{"group":"tables.example.com","scope":"Namespaced","names":{"kind":"Table","plural":"tables","singular":"table"},
					"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`),
			},
		},
	}
	create(t, c, app)
	for _, template := range app.Spec.ResourceTemplates {
		create(t, c, resourceOf(app, template))
	}

	got := waybill(t, h, "diff", "kubernetesapplication/tables", "-n", namespace)
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.out, "# Table.tables.example.com "+target+"/one in berlin: created\n")
	assert.Contains(t, got.out, "# Chair.tables.example.com "+target+"/one in berlin: refused: the cluster does not offer this kind, and nothing")
	assert.Contains(t, got.errOut, "2 created, 0 changed, 0 deleted, 1 refused")

	got = waybill(t, h, "diff", "kubernetesapplicationresource/tables-table", "-n", namespace)
	assert.Contains(t, got.errOut, "1 created, 0 changed, 0 deleted, 0 refused", got.out)
	got = waybill(t, h, "diff", "kubernetesapplicationresource/tables-chair", "-n", namespace)
	assert.Contains(t, got.errOut, "0 created, 0 changed, 0 deleted, 1 refused", got.out)
}

// K47: a chart brings kinds in its folder crds. Where these are skipped, Helm refuses their objects.
func TestDiff_kindThatAChartDefines(t *testing.T) {
	s, cluster := newSources(t), user(t)
	apps := cluster.Namespace(t)
	production := &v1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: apps, Name: "itself"}}
	production.Labels = map[string]string{"environment": "production"} // as the definition wants it
	create(t, clientOf(t, cluster), production)
	inst := installation(apps, "widgets", "widgets", "0.2.0")
	inst.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.ApplicationInstallationKind))
	for policy, want := range map[v1alpha1.CRDPolicy]string{"": "created", v1alpha1.CRDSkip: "refused: the cluster does not serve this kind, and no CRD that would be"} {
		inst.Spec.DeployOptions = &v1alpha1.DeployOptions{Helm: &v1alpha1.HelmDeployOptions{CRDs: policy}}
		content, err := yaml.Marshal(inst)
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "widgets.yaml")
		require.NoError(t, os.WriteFile(file, content, 0o600))
		got := waybill(t, cluster, "diff", "-f", file, "--definition", s.path("catalog", "widgets.yaml"))
		assert.Equal(t, 1, got.code, got.errOut)
		assert.Regexp(t, `(?m)^# Widget.example.com \S+ in user: `+want, got.out)
	}
}
