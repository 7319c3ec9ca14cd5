package dashboard

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/cmd/internal/fleet"
	"waybill.dev/waybill/test/env"
)

// reviewedBy returns the configuration of an API server where answer says what a user may do, unless it says nothing.
func reviewedBy(t *testing.T, api *env.Cluster, answer func(w http.ResponseWriter) bool) *rest.Config {
	t.Helper()
	transport, err := rest.TransportFor(api.RESTConfig())
	require.NoError(t, err)
	target, _, err := rest.DefaultServerUrlFor(api.RESTConfig())
	require.NoError(t, err)
	behind := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") || !answer(w) {
			behind.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// What an API server says of an answer is kept with it: many of them take no memory.
func TestViewer_keepsLittleOfAnAnswer(t *testing.T) {
	for name, status := range map[string]authorizationv1.SubjectAccessReviewStatus{
		"EvaluationError": {EvaluationError: strings.Repeat("x", 1<<20)},
		"Reason":          {Reason: strings.Repeat("y", 1<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			v := newViewer("", nil, fleet.NewHub("hub", reviewedBy(t, hub(t), func(w http.ResponseWriter) bool {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusCreated)
				_ = json.NewEncoder(w).Encode(&authorizationv1.SelfSubjectAccessReview{ // the client has its answer, or fails
					TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"}, Status: status,
				})
				return true
			})))
			ok, why := v.may(t.Context(), v.hub, authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"})
			assert.False(t, ok)
			assert.True(t, strings.HasPrefix(why, "You may not get pods. "), why[:min(len(why), 100)])
			assert.LessOrEqual(t, len(why), len("You may not get pods. ")+maxReason)
		})
	}
}
