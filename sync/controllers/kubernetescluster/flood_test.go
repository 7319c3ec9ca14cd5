package kubernetescluster_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// flooding returns a kubeconfig of the cluster that leads through what answers watches of a resource
// with one event that does not end.
func flooding(t *testing.T, c *env.Cluster, resource string) []byte {
	t.Helper()
	kubeconfig, _ := floodingAt(t, c, func(r *http.Request) bool {
		return strings.HasSuffix(r.URL.Path, "/"+resource) && r.URL.Query().Get("watch") != ""
	})
	return kubeconfig
}

// floodingAt is flooding for some requests. It returns how much was sent to those, too.
func floodingAt(t *testing.T, c *env.Cluster, floods func(*http.Request) bool) ([]byte, *atomic.Int64) {
	t.Helper()
	all := &atomic.Int64{}
	config := c.RESTConfig()
	target, err := url.Parse(config.Host)
	require.NoError(t, err)
	forward := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Del("Authorization")
	}}
	forward.Transport, err = rest.TransportFor(config)
	require.NoError(t, err)
	piece := []byte(strings.Repeat("a", 64<<10))
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !floods(r) {
			forward.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, err := w.Write([]byte(`{"type":"ADDED","object":{"metadata":{"name":"`))
		for sent := 0; err == nil && sent < 256<<20; sent += len(piece) {
			_, err = w.Write(piece)
			all.Add(int64(len(piece)))
		}
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	kubeconfig, err := env.Kubeconfig(c.Name(), &rest.Config{
		Host: server.URL, BearerToken: "t", TLSClientConfig: rest.TLSClientConfig{CAData: authority},
	})
	require.NoError(t, err)
	return kubeconfig, all
}

// A cluster that sends more than is accepted of it is disconnected, and its object says why. The others
// do not notice.
func TestKubernetesCluster_sendsTooMuch(t *testing.T) {
	h := newHub(t, options{})
	h.add("good", nil)
	before := h.until("good", isReady, "the other cluster is ready")
	h.add("bad", flooding(t, userCluster(t), "applicationinstallations"))
	kc := h.until("bad", reason(v1alpha1.LimitExceededReason), "it is disconnected")

	const said = "an event of WATCH /apis/apps.waybill.dev/v1alpha1/applicationinstallations exceeds the limit of 24 MiB"
	assert.Equal(t, "disconnected because the API server sent too much: "+said+"; retried after a pause",
		condition(kc, v1alpha1.ReadyCondition).Message)
	reachable := condition(kc, v1alpha1.ClusterReachableCondition)
	assert.Equal(t, metav1.ConditionFalse, reachable.Status)
	assert.Equal(t, v1alpha1.LimitExceededReason, reachable.Reason)
	assert.Equal(t, said, reachable.Message)
	assert.False(t, kc.Status.Reachable)

	h.change("good", func(kc *v1alpha1.KubernetesCluster) {
		kc.Annotations = map[string]string{v1alpha1.ReconcileAtAnnotation: "now"}
	})
	after := h.until("good", func(kc *v1alpha1.KubernetesCluster) bool { return kc.Status.LastHandledReconcileAt == "now" }, "it is reconciled")
	assert.Equal(t, before.Status.Conditions, after.Status.Conditions)
}

// What is read from a cluster to let it go is bounded as well.
func TestKubernetesCluster_sendsTooMuchWhenAbandoned(t *testing.T) {
	h := newHub(t, options{})
	var ending atomic.Bool
	kubeconfig, sent := floodingAt(t, userCluster(t), func(r *http.Request) bool {
		return ending.Load() && strings.HasSuffix(r.URL.Path, "/applicationdefinitions") && r.URL.Query().Get("watch") == ""
	})
	h.add("bad", kubeconfig, func(kc *v1alpha1.KubernetesCluster) { kc.Spec.OnDelete = v1alpha1.DeleteAbandon })
	h.until("bad", isReady, "it is engaged")
	ending.Store(true)
	require.NoError(t, h.Delete(t.Context(), h.get("bad")))
	h.gone("bad")
	assert.NotZero(t, sent.Load())
	assert.Less(t, sent.Load(), int64(100<<20))
}
