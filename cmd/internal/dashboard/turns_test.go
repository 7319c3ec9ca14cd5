package dashboard

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/sync/render"
)

// Users take turns with what is rendered for them: one has no more of it by opening many pages.
func TestReads_renderInTurns(t *testing.T) {
	s := &server{budget: newBudget()}
	request := as(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), &viewer{name: "jane"})
	served := ""
	s.reads(func(_ http.ResponseWriter, r *http.Request) { served = render.TermsOf(r.Context()).For })(httptest.NewRecorder(), request)
	assert.Equal(t, "jane", served)
}
