package dashboard

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
)

// A KubernetesCluster that was deleted is not one that does not answer: its pages, and those of what was in it, are not there, and
// open ones do not go on showing what they had.
func TestPages_ofAClusterThatIsGone(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	unread := cluster(ns, "unread")
	unread.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeyReference{Name: "nowhere"}
	gone := cluster(ns, "gone")
	c := create(t, api, gone, unread)
	b := open(t, api.RESTConfig(), ns)
	own := objectLink("", "", "kubernetesclusters", ns, "gone")
	require.Equal(t, http.StatusOK, b.get(own).status)
	require.NoError(t, c.Delete(t.Context(), gone))
	installation := objectLink(ns, "gone", "applicationinstallations", ns, "web")
	for _, path := range []string{own, own + "/tree", installation, installation + "/tree", installation + "/values", logsLink(keyOf(gone), ns, "web")} {
		got := b.get(path)
		assert.Equal(t, http.StatusNotFound, got.status, path)
		assert.Contains(t, got.text(), "There is no ", path)
	}
	assert.Contains(t, b.get(installation).text(), "There is no KubernetesCluster "+ns+"/gone")
	there := b.get(objectLink(ns, "unread", "applicationinstallations", ns, "web"))
	assert.Equal(t, http.StatusBadGateway, there.status, "its kubeconfig is missing: it is there")
}
