package webhooks

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// hostile is a user cluster that describes its kinds as an API server does, and answers dry runs by
// itself.
func hostile(t *testing.T, discovery, try http.HandlerFunc) *remoteDryRun {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPatch {
			try(w, r)
			return
		}
		discovery(w, r)
	}))
	t.Cleanup(server.Close)
	d := dryRun(t)
	d.timeout = time.Minute
	d.parse = func([]byte) (*rest.Config, error) {
		return &rest.Config{Host: server.URL, BearerToken: "secret"}, nil
	}
	return d
}

// describeCore answers about the API group "" alone.
func describeCore(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/api":
		_, _ = io.WriteString(w, `{"kind": "APIVersions", "versions": ["v1"]}`)
	case "/apis":
		_, _ = io.WriteString(w, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`)
	default:
		_, _ = io.WriteString(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [
{"name": "configmaps", "singularName": "configmap", "namespaced": true, "kind": "ConfigMap", "verbs": ["patch"]}]}`)
	}
}

// The token of a cluster goes to that cluster and nowhere else.
func TestRemoteDryRun_followsNoRedirect(t *testing.T) {
	var tokens atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			tokens.Add(1)
		}
		describeCore(w, r)
	}))
	t.Cleanup(elsewhere.Close)
	redirect := func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}
	for name, d := range map[string]*remoteDryRun{
		"when it describes its kinds": hostile(t, redirect, redirect),
		"when it tries a template":    hostile(t, describeCore, redirect),
	} {
		warned := d.try(t.Context(), scheduled(configMapTemplate(t, "a")), nil)
		require.Len(t, warned, 1, name)
		assert.Contains(t, warned[0], "could not be validated by a dry run in cluster berlin", name)
	}
	assert.Zero(t, tokens.Load())
}

// Whatever a cluster sends, it is a warning at most.
func TestRemoteDryRun_boundsWhatAClusterSends(t *testing.T) {
	endless := func(start, more string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, err := io.WriteString(w, start)
			for err == nil && r.Context().Err() == nil {
				_, err = io.WriteString(w, strings.Repeat(more, 1000))
			}
		}
	}
	refusal := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		endless(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "`, "no ")(w, r)
	}
	for name, tc := range map[string]struct {
		reason            string
		discovery, dryRun http.HandlerFunc
		says              string
	}{
		"an object":    {"nobody reads it", describeCore, endless(`{"kind": "ConfigMap", "apiVersion": "v1", "x": [`, `{},`), ""},
		"a refusal":    {"it is cut off", describeCore, refusal, "could not be validated by a dry run in cluster berlin"},
		"kinds, text":  {"bytes are counted", endless(`{"kind": "APIVersions", "versions": ["`, "v1 "), nil, "the cluster sends more than 4194304 bytes"},
		"kinds, lists": {"values are counted", endless(`{"kind": "APIVersions", "versions": [`, `"",`), nil, "the JSON text contains more than 100000 values"},
	} {
		t.Run(name, func(t *testing.T) {
			warned := hostile(t, tc.discovery, tc.dryRun).try(t.Context(), scheduled(configMapTemplate(t, "a")), nil)
			if tc.says == "" {
				assert.Empty(t, warned, tc.reason)
				return
			}
			require.Len(t, warned, 1, tc.reason)
			assert.Contains(t, warned[0], tc.says, tc.reason)
		})
	}
}
