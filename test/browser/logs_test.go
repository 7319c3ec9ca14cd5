package browser

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/test/env"
)

// writing has a container of a cluster write, and returns its log and the address of its page.
func writing(t *testing.T, api *env.Cluster, cluster string) (log *env.PodLogs, page string) {
	t.Helper()
	ns := api.Namespace(t)
	log, err := api.ServePodLogs(t.Context(), "node-of-"+ns)
	require.NoError(t, err)
	t.Cleanup(log.Stop)
	c := clientOf(t, api.RESTConfig())
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "default"}} // which no controller makes here
	require.NoError(t, client.IgnoreAlreadyExists(c.Create(t.Context(), account)))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"},
		Spec:       corev1.PodSpec{NodeName: "node-of-" + ns, Containers: []corev1.Container{{Name: "main", Image: "web"}}},
	}
	require.NoError(t, c.Create(t.Context(), pod))
	return log, "/logs/" + system + "/" + cluster + "/" + ns + "/web"
}

// K68: a log shows lines as they are written, each once, also those that are written while the tab is hidden.
func TestLogs_followed(t *testing.T) {
	w := fleet(t)
	log, page := writing(t, w.berlin, "berlin")
	log.Write("line of the past")
	b := open(t, start(t, w.hub.RESTConfig(), system))
	b.visit(page)
	b.awaitText("line of the past")
	b.awaitText("Lines appear as they are written.")
	for _, line := range []string{"line that is new", "line with <b>markup</b>"} {
		log.Write(line)
		b.awaitText(line)
	}
	b.check()
	require.NoError(t, log.AwaitFollower(t.Context(), 1))
	b.see(false)
	log.Write("line while hidden")
	b.see(true)
	b.awaitText("line while hidden")
	log.Write("line at last")
	b.awaitText("line at last")
	shown := eval[string](b, `document.getElementById("log").textContent`)
	assert.Equal(t, "line of the past\nline that is new\nline with <b>markup</b>\nline while hidden\nline at last\n", shown)
	assert.Equal(t, 1, strings.Count(b.text(), "line of the past"))
}

// Without JavaScript, a log is what it was when its page was opened.
func TestLogs_withoutJavaScript(t *testing.T) {
	w := fleet(t)
	log, page := writing(t, w.berlin, "berlin")
	log.Write("line of the past")
	b := open(t, start(t, w.hub.RESTConfig(), system))
	b.withoutScript()
	b.visit(page)
	assert.Contains(t, b.html(), "line of the past")
	log.Write("line that is new")
	b.visit(page)
	assert.Contains(t, b.html(), "line that is new")
}
