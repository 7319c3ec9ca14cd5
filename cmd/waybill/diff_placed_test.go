package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/deliver/apply"
)

// settings is the manifest of a ConfigMap with one key.
func settings(namespace, name, value string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"` + namespace + `","name":"` + name + `"},"data":{"key":"` + value + `"}}`
}

// settingsApplication is scheduled to berlin. Of its templates, one is as it is in the cluster,
// one was changed, one is new, one is of an object of others; one has left.
func settingsApplication(t *testing.T) (c client.Client, namespace, target string) {
	t.Helper()
	h, u := hub(t), user(t)
	c, namespace, target = clientOf(t, h), h.Namespace(t), u.Namespace(t)
	userClient := clientOf(t, u)
	engage(t, c, namespace, "berlin", u.Kubeconfig())
	app := &v1alpha1.KubernetesApplication{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"},
		Spec: v1alpha1.KubernetesApplicationSpec{
			ClusterName: "berlin", ClusterSelector: &metav1.LabelSelector{},
			ResourceTemplates: []v1alpha1.ResourceTemplate{
				templateOf(t, "settings-same", settings(target, "same", "old")),
				templateOf(t, "settings-other", settings(target, "other", "new")),
				templateOf(t, "settings-fresh", settings(target, "fresh", "new")),
				templateOf(t, "settings-theirs", settings(target, "theirs", "new")),
			},
		},
	}
	create(t, c, app)
	for _, name := range []string{"same", "other", "gone"} {
		kar := resourceOf(app, templateOf(t, "settings-"+name, settings(target, name, "old")))
		kar.Status.Inventory = &v1alpha1.Inventory{Entries: []v1alpha1.InventoryEntry{{ID: target + "_" + name + "__ConfigMap", Version: "v1"}}}
		create(t, c, kar)
		object, err := kar.Spec.Template.Object()
		require.NoError(t, err)
		owner := apply.Owner{HubID: "id", Kind: v1alpha1.KubernetesApplicationResourceKind, Namespace: namespace, Name: kar.Name}
		object.SetAnnotations(map[string]string{v1alpha1.OwnerAnnotation: owner.String(), v1alpha1.ResourceUIDAnnotation: string(kar.UID)})
		require.NoError(t, userClient.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(v1alpha1.FieldManager)))
	}
	create(t, userClient, configMap(target, "theirs"))
	return c, namespace, target
}

// What the templates of an application would change in its cluster.
func TestDiff_kubernetesApplication(t *testing.T) {
	_, namespace, target := settingsApplication(t)
	got := waybill(t, hub(t), "diff", "kubernetesapplication/settings", "-n", namespace, "-o", "json")
	assert.Equal(t, 1, got.code, got.errOut)
	var results []struct{ Cluster, Kind, Namespace, Name, Action, Note, Diff string }
	require.NoError(t, json.Unmarshal([]byte(got.out), &results))
	require.Len(t, results, 4, got.out)
	actions := map[string]string{}
	for _, r := range results {
		assert.Equal(t, "berlin", r.Cluster)
		assert.Equal(t, target, r.Namespace)
		actions[r.Name] = r.Action
		switch r.Name {
		case "other":
			assert.Contains(t, r.Diff, "-  key: old\n+  key: new\n")
			assert.NotContains(t, r.Diff, "annotations", "marks follow from who delivers the object")
		case "theirs":
			assert.Contains(t, r.Note, "it exists and Waybill did not make it")
		}
	}
	assert.Equal(t, map[string]string{"other": "changed", "fresh": "created", "gone": "deleted", "theirs": "refused"}, actions)
	assert.Contains(t, got.errOut, "1 created, 1 changed, 1 deleted, 1 refused, 1 as they are")

	got = waybill(t, hub(t), "diff", "kubernetesapplicationresource/settings-same", "-n", namespace)
	assert.Equal(t, 0, got.code, got.errOut)
	assert.Empty(t, got.out)
}

// A file shows what applying it would change in the hub, and then in the cluster.
func TestDiff_kubernetesApplicationInAFile(t *testing.T) {
	c, namespace, target := settingsApplication(t)
	app := &v1alpha1.KubernetesApplication{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "settings"}, app))
	app = &v1alpha1.KubernetesApplication{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KubernetesApplicationKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"},
		Spec: v1alpha1.KubernetesApplicationSpec{
			ClusterSelector:   &metav1.LabelSelector{},
			ResourceTemplates: []v1alpha1.ResourceTemplate{templateOf(t, "settings-same", settings(target, "same", "newest"))},
		},
	}
	save := func() string {
		content, err := yaml.Marshal(app)
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "settings.yaml")
		require.NoError(t, os.WriteFile(file, content, 0o600))
		return file
	}
	got := waybill(t, hub(t), "diff", "-f", save())
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.out, "# KubernetesApplication.apps.waybill.dev "+namespace+"/settings in ")
	assert.Contains(t, got.out, "# ConfigMap "+target+"/same in berlin: changed\n")
	assert.Contains(t, got.out, "-  key: old\n+  key: newest\n")
	assert.Contains(t, got.out, "# ConfigMap "+target+"/other in berlin: deleted\n", "its template has left")

	app.Name = "unscheduled"
	got = waybill(t, hub(t), "diff", "-f", save())
	assert.Equal(t, 1, got.code, got.errOut)
	assert.Contains(t, got.errOut, "KubernetesApplication/unscheduled in "+namespace+": it is not scheduled to a cluster yet")
}
