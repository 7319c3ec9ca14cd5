package cluster

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A client of what is not engaged reads no more than others do.
func TestRegistry_unengaged(t *testing.T) {
	r := NewRegistry(&Cluster{views: newViews()}, Options{})
	t.Cleanup(r.Close)
	h := newHostile(t, map[string]http.HandlerFunc{configMapPath: sends(`{"items":[{"metadata":{"name":"`, "aaaaaaaa")})
	c, release, err := r.Unengaged(h.config())
	require.NoError(t, err)
	_, err = c.Resource(configMaps).List(t.Context(), metav1.ListOptions{})
	require.ErrorContains(t, err, "the response to GET /api/v1/configmaps exceeds the limit of 64 MiB")
	release()
	_, err = c.Resource(configMaps).List(t.Context(), metav1.ListOptions{})
	require.Error(t, err)
}
