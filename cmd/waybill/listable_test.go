package main

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/test/env"
)

// withoutMetadata returns the kubeconfig of a server in front of the cluster that answers requests
// for the metadata of ConfigMaps with a status code, as an aggregated API server may.
func withoutMetadata(t *testing.T, cluster *env.Cluster, code int) string {
	t.Helper()
	return inFrontOf(t, cluster, func(w http.ResponseWriter, r *http.Request) bool {
		other := !strings.HasSuffix(r.URL.Path, "/configmaps") || !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")
		if !other {
			w.WriteHeader(code)
		}
		return other
	})
}

// inFrontOf returns the kubeconfig of a server in front of the cluster that passes requests on for which
// pass returns true; it answers the others.
func inFrontOf(t *testing.T, cluster *env.Cluster, pass func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	admin := cluster.RESTConfig()
	target, err := url.Parse(admin.Host)
	require.NoError(t, err)
	transport, err := rest.TransportFor(admin)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = transport
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if pass(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return kubeconfigFile(t, &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}})
}

// Objects of a kind whose metadata cannot be listed are not said to be missing. Who looks at all
// kinds leaves that one out.
func TestTree_kindWithoutMetadata(t *testing.T) {
	cluster := user(t)
	c, namespace := database(t, cluster)
	app := adopted(t, c, namespace, "shop")
	app.Spec.Components = append(app.Spec.Components, v1alpha1.ApplicationComponent{Kind: "ConfigMap", Name: "db"})
	require.NoError(t, c.Update(t.Context(), app))
	for _, code := range []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable} {
		got := waybillWith(t, "", "tree", "application/shop", "-n", namespace, "--kubeconfig", withoutMetadata(t, cluster, code))
		require.Equal(t, 0, got.code, got.errOut)
		assert.Empty(t, got.errOut, code)
		assert.Regexp(t, `(?m)^├─ ConfigMap/db +\S+ +Unknown +list ConfigMap: `, got.out, code)
		assert.Equal(t, 1, strings.Count(got.out, "ConfigMap/"), "below the Database, there is none: %s", got.out)
		assert.Contains(t, got.out, "   ├─ Replica/db-1")
	}
}

// A90: a kind that was named must be listed; of all kinds, those that can be.
func TestAdopt_kindWithoutMetadata(t *testing.T) {
	cluster := user(t)
	_, namespace := shop(t, cluster)
	kubeconfig := withoutMetadata(t, cluster, http.StatusNotAcceptable)
	adopt := []string{"adopt", "shop", "-n", namespace, "-l", "app=shop", "--dry-run", "--kubeconfig", kubeconfig}
	got := waybillWith(t, "", adopt...)
	assert.Equal(t, 0, got.code, got.errOut)
	assert.Contains(t, got.out, "\n1 object annotated (dry run)\n", "the Deployment")

	got = waybillWith(t, "", append(adopt, "--kind", "ConfigMap")...)
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.errOut, "error: list ConfigMap: ")
}
