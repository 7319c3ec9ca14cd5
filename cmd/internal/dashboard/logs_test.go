package dashboard

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Logs are read as the user: who may not is told which right is missing.
func TestLogs_asTheUser(t *testing.T) {
	api := hub(t)
	ns := api.Namespace(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web"}, {Name: "side", Image: "web"}}}}
	runs(t, create(t, api), pod)
	page := logsLink(types.NamespacedName{}, ns, "web")
	assert.Equal(t, "/logs/-/-/"+ns+"/web", page)
	got := open(t, api.RESTConfig(), ns).get(page)
	assert.Equal(t, http.StatusOK, got.status)
	for _, text := range []string{"<option selected>main</option>", "<option>side</option>", `data-follow="`} { // no node runs it, so that it has written nothing
		assert.Contains(t, got.body, text)
	}
	user := open(t, reader(t, api, ns), ns)
	refused := user.get(page)
	assert.Equal(t, http.StatusForbidden, refused.status)
	assert.Contains(t, refused.text(), `cannot get resource "pods"`)
	assert.Equal(t, http.StatusForbidden, user.get(page+"/follow?container=main").status)
}

// runs creates a Pod, with the ServiceAccount that it needs, which no controller makes here.
func runs(t *testing.T, c client.Client, pod *corev1.Pod) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "default"}}
	require.NoError(t, client.IgnoreAlreadyExists(c.Create(t.Context(), account)))
	require.NoError(t, c.Create(t.Context(), pod))
}
