package dashboard

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"waybill.dev/waybill/cmd/internal/fleet"
)

// fails answers with an error.
func fails(code int32, reason metav1.StatusReason) func(http.ResponseWriter) bool {
	return func(w http.ResponseWriter) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(code))
		_ = json.NewEncoder(w).Encode(&metav1.Status{ // the client has its answer, or fails
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: "try again",
		})
		return true
	}
}

// What a user was allowed counts on while the API server does not answer; not where they have it turn away what it is asked.
func TestViewer_whileItIsNotKnown(t *testing.T) {
	api := hub(t)
	for name, tc := range map[string]struct {
		reason  string
		answer  func(http.ResponseWriter) bool
		allowed bool
	}{
		"Away":   {"rights cannot be withdrawn", fails(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable), true},
		"Busy":   {"the user may be why", fails(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests), false},
		"Broken": {"it answers", fails(http.StatusInternalServerError, metav1.StatusReasonInternalError), false},
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(http.ResponseWriter) bool { return false }
			v := newViewer("", nil, fleet.NewHub("hub", reviewedBy(t, api, func(w http.ResponseWriter) bool { return answer(w) })))
			now := time.Now()
			v.now = func() time.Time { return now }
			what := authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"}
			ok, why := v.may(t.Context(), v.hub, what)
			require.True(t, ok, why)
			now, answer = now.Add(reviewAgain), tc.answer
			ok, why = v.may(t.Context(), v.hub, what)
			assert.Equal(t, tc.allowed, ok, tc.reason)
			assert.Equal(t, !tc.allowed, strings.HasPrefix(why, "It cannot be found out what you may do"), why)
		})
	}
}
