package installation

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/cmd/internal/fleet"
)

// C59: a cluster that cannot say whether a definition is offered is no cluster that it is not offered to.
func TestCheckOffer_thatCannotBeSeen(t *testing.T) {
	definition := &v1alpha1.ApplicationDefinition{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	definition.Spec.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"environment": "production"}}
	for status, tc := range map[int]struct {
		reason string
		known  bool
	}{
		http.StatusNotFound:            {"a user cluster does not offer the kind", false},
		http.StatusForbidden:           {"a tenant may not list them", false},
		http.StatusInternalServerError: {"another time there may be an answer", true},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(server.Close)
		cluster := fleet.NewHub("berlin", &rest.Config{Host: server.URL})
		warned := ""
		l := &Lookup{Hub: cluster, Target: cluster, Placed: true, Warn: func(format string, args ...any) { warned += fmt.Sprintf(format, args...) }}
		err := l.checkOffer(t.Context(), &v1alpha1.ApplicationInstallation{}, definition)
		if tc.known {
			assert.ErrorContains(t, err, "see whether ApplicationDefinition web is offered to berlin: ", tc.reason)
			assert.Empty(t, warned, tc.reason)
			continue
		}
		assert.NoError(t, err, tc.reason)
		assert.Contains(t, warned, "it is not known whether ApplicationDefinition web is offered to berlin: ", tc.reason)
	}
}
