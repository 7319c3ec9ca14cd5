package dashboard

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// Who runs a seed says how many clusters it has: a tree reads no more of them than of the hub's, and says so.
func TestTree_readsFewClustersOfASeed(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	var names []string
	for i := range maxRead + 5 {
		names = append(names, fmt.Sprintf("c%02d", i))
	}
	c := seeded(t, api, ns, names...)
	definition := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: "seeds-" + ns}, Spec: v1alpha1.ApplicationDefinitionSpec{
		Versions: []v1alpha1.ApplicationVersion{{Version: "1.0.0", Template: chartTemplate()}},
	}}
	create(t, api, definition)
	b := open(t, api.RESTConfig(), ns)
	assert.Contains(t, b.get(objectLink("", "", "kubernetesclusters", ns, "seed")+"/tree").text(), fmt.Sprintf("more clusters of seed seed are not read here: of them, %d are", maxRead))
	assert.Contains(t, b.get(objectLink(ns, "seed", "applicationdefinitions", "", definition.Name)+"/tree").text(), fmt.Sprintf("What is in more clusters of seed is not read: a tree leads to %d at most.", maxRead))
	require.NoError(t, c.DeleteAllOf(t.Context(), &v1alpha1.KubernetesCluster{}, client.InNamespace(ns)))
}
