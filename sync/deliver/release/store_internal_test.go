package release

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/client-go/rest"
)

// K53: an action that has ended records how it ended, but begins no revision: the release may be
// uninstalled by now.
func TestStore_beginsNoRevisionOfAnActionThatHasEnded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("nothing is to be asked: %s %s", r.Method, r.URL)
	}))
	t.Cleanup(server.Close)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := newStore(ended, t.Context(), &rest.Config{Host: server.URL}, Identity{Namespace: "default", Name: "web"}, Observed{})
	require.NoError(t, err)
	s.makeRoom = func(*helmrelease.Release) {}
	err = s.Create(s.key(1), &helmrelease.Release{Name: "web", Version: 1, Info: &helmrelease.Info{Status: helmrelease.StatusPendingInstall}})
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, s.numbers())
}
