package dashboard

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

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

// In a large fleet, a tree reads the clusters that it leads to, and not all of them: the kubeconfig of each would be read.
func TestTree_readsWhatItLeadsTo(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	c := create(t, api)
	definition := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: "tree-" + ns}, Spec: v1alpha1.ApplicationDefinitionSpec{
		Versions: []v1alpha1.ApplicationVersion{{Version: "1.0.0", Template: chartTemplate()}},
	}}
	gs := syncOf(ns)
	for i := range maxRead + 10 {
		k := cluster(ns, fmt.Sprintf("c%02d", i))
		if i < maxRead+5 {
			k = cluster(ns, k.Name, installed(definition.Name, "1.0.0", metav1.ConditionTrue))
		}
		k.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "none-" + k.Name}
		create(t, api, k)
		gs.Status.Clusters = append(gs.Status.Clusters, v1alpha1.GitSyncClusterStatus{Name: k.Name, Ready: true})
	}
	create(t, api, definition, gs)
	b := open(t, api.RESTConfig(), ns)
	for reason, tc := range map[string]struct {
		path   string
		more   string
		hasNot []string
	}{
		"those that use a definition":  {objectLink("", "", "applicationdefinitions", "", definition.Name), "What is in 5 more clusters is not read", []string{"none-c50", ">c54<"}},
		"those that a GitSync names":   {objectLink("", "", "gitsyncs", ns, "team"), "What is in 10 more clusters is not read", []string{"none-c50", "none-c59", "no such KubernetesCluster"}},
		"a cluster reads no other one": {objectLink("", "", "kubernetesclusters", ns, "c55"), "none-c55", []string{"none-c00", "none-c54"}},
	} {
		got := b.get(tc.path + "/tree").text()
		assert.Contains(t, got, tc.more, reason)
		for _, text := range tc.hasNot {
			assert.NotContains(t, got, text, reason)
		}
		if !strings.Contains(tc.path, "kubernetesclusters") {
			assert.Contains(t, got, "none-c00", reason)
			assert.Contains(t, got, "none-c49", reason)
		}
	}
	require.NoError(t, c.DeleteAllOf(t.Context(), &v1alpha1.KubernetesCluster{}, client.InNamespace(ns)))
}
