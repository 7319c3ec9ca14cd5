package apply_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/sync/deliver/apply"
)

// C28, P14: a deletion that is refused with code 409 is reported in the words of what refuses it. Only if the
// object has changed indeed is it looked at again.
func TestPrune_refusedAsAConflict(t *testing.T) {
	cases := map[string]struct{ reason, words, want string }{
		"Webhook": {
			"the API server says that it was one",
			`admission webhook \"v.example.com\" denied the request: it is used by team-a/web; delete that`, apply.ReasonRefused,
		},
		"Storage": {"nothing has changed", "Operation cannot be fulfilled on the object: it is used by team-a/web; delete that", apply.ReasonFailed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cluster, tries := shared(t), 0
			config := rest.CopyConfig(cluster.RESTConfig())
			config.Wrap(func(next http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					if r.Method != http.MethodDelete || !strings.HasSuffix(r.URL.Path, "/used") {
						return next.RoundTrip(r)
					}
					tries++
					body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409,"message":"` + tc.words + `"}`
					return &http.Response{
						StatusCode: http.StatusConflict, Header: http.Header{"Content-Type": {"application/json"}},
						Body: io.NopCloser(strings.NewReader(body)), Request: r,
					}, nil
				})
			})
			f := newFixtureAs(t, cluster, config)
			first := f.mustApply(nil, configMap(t, "used", "one"), configMap(t, "other", "one"))
			for range 2 {
				second := f.apply(first.Inventory)
				require.Len(t, second.Problems, 1)
				assert.Equal(t, tc.want, second.Problems[0].Reason)
				assert.Equal(t, strings.ReplaceAll(tc.words, `\"`, `"`), second.Problems[0].Message, tc.reason)
				assert.Len(t, second.Inventory, 1)
			}
			assert.Equal(t, 2, tries, "each time once")
			assert.Nil(t, f.live("configmaps", "other"))
		})
	}
}
