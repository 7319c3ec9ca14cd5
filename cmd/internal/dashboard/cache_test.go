package dashboard

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/test/env"
)

// What people look into takes no more room than it is given.
func TestSources_haveASize(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	gs := committed(t, map[string]string{"web.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: page}\n"})
	gs.Namespace, gs.Name = ns, "team"
	c := create(t, api, gs)
	ca, err := env.CA()
	require.NoError(t, err)
	require.NoError(t, c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "git"}, Data: map[string][]byte{"ca.crt": ca}}))
	for size, says := range map[int64]string{100 << 20: "kind: ConfigMap", 2: "limit StoreBytes is 2"} {
		b := open(t, api.RESTConfig(), ns)
		b.server.sources.dir, b.server.sources.size = t.TempDir(), size
		assert.Contains(t, b.get(objectLink("", "", "gitsyncs", ns, "team")+"/manifests").text(), says)
		assert.DirExists(t, b.server.sources.dir+"/git")
		assert.DirExists(t, b.server.sources.dir+"/charts")
	}
}
