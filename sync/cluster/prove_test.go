package cluster_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"waybill.dev/waybill/test/env"
)

const secretsPath = "/api/v1/namespaces/kube-system/secrets"

// C45: that two configurations lead to one cluster is proved by what is written through the one and
// read through the other, whatever their servers report; nothing stays behind.
func TestRegistry_provesThatTwoAreOneCluster(t *testing.T) {
	answer := func(status int, content string) func(*httptest.Server, http.ResponseWriter, *http.Request) bool {
		return func(_ *httptest.Server, w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasPrefix(r.URL.Path, secretsPath) || r.Method == http.MethodDelete {
				return false
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(content))
			return true
		}
	}
	gate, gone := gated(t, user(t))
	gate.Shut()
	const another = "a Secret that was written through the one to namespace kube-system is not found through the other, so that they are two clusters"
	cases := map[string]struct {
		claimant, incumbent *rest.Config
		err                 string
	}{
		"OneCluster":   {claimant: user(t).RESTConfig(), incumbent: user(t).RESTConfig()},
		"TheHubItself": {claimant: hub(t).RESTConfig(), incumbent: newLocal(t).Config()},
		"TwoClusters":  {claimant: hub(t).RESTConfig(), incumbent: user(t).RESTConfig(), err: another},
		"ClaimantStoresNothing": {
			claimant: behind(t, user(t), answer(http.StatusCreated, "{}")), incumbent: user(t).RESTConfig(), err: another,
		},
		"IncumbentMakesUpAnAnswer": {
			claimant: user(t).RESTConfig(), incumbent: behind(t, user(t), answer(http.StatusOK, `{"data":{"nonce":"AAAA"}}`)), err: another,
		},
		"ClaimantRefuses": {
			claimant: behind(t, user(t), answer(http.StatusForbidden, "s3cr3t")), incumbent: user(t).RESTConfig(),
			err: "cannot create a Secret in namespace kube-system: the API server answers with 403 Forbidden",
		},
		"IncumbentRefuses": {
			claimant: user(t).RESTConfig(), incumbent: behind(t, user(t), answer(http.StatusInternalServerError, "s3cr3t")),
			err: "cannot get a Secret in namespace kube-system: the API server answers with 500 Internal Server Error",
		},
		"IncumbentIsGone": {
			claimant: user(t).RESTConfig(), incumbent: gone,
			err: "cannot get a Secret in namespace kube-system: connection refused",
		},
		"IncumbentTalksForEver": {
			claimant: user(t).RESTConfig(),
			incumbent: behind(t, user(t), func(_ *httptest.Server, w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasPrefix(r.URL.Path, secretsPath) {
					return false
				}
				for spaces := []byte(strings.Repeat(" ", 64<<10)); r.Context().Err() == nil; {
					if _, err := w.Write(spaces); err != nil {
						break
					}
				}
				return true
			}),
			err: "cannot get a Secret in namespace kube-system: the response to",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(t, fast())
			err := r.Prove(t.Context(), tc.claimant, tc.incumbent)
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.err)
				assert.NotContains(t, err.Error(), "waybill-proof-", "it is the same at each try")
			}
			for _, c := range []*env.Cluster{hub(t), user(t)} {
				clientset, err := kubernetes.NewForConfig(c.RESTConfig())
				require.NoError(t, err)
				left, err := clientset.CoreV1().Secrets(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{})
				require.NoError(t, err)
				for _, secret := range left.Items {
					assert.NotContains(t, secret.Name, "waybill-proof-")
				}
			}
		})
	}
}

// C38: whom a kubeconfig leads to can be asked without engaging the cluster.
func TestRegistry_identifies(t *testing.T) {
	r := newRegistry(t, fast())
	uid, err := r.Identify(t.Context(), user(t).RESTConfig())
	require.NoError(t, err)
	r.Ensure(one, "a", user(t).RESTConfig())
	assert.Equal(t, engaged(t, r, one).UID(), uid)
	for reason, uid := range map[string]string{
		"there is none":            "",
		"it would fill the status": strings.Repeat("a", 65),
		"it would forge a message": "abc\nReady",
	} {
		config := behind(t, user(t), func(_ *httptest.Server, w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/api/v1/namespaces/kube-system" {
				return false
			}
			return assert.NoError(t, json.NewEncoder(w).Encode(map[string]any{"metadata": map[string]any{"uid": uid}}))
		})
		_, err = r.Identify(t.Context(), config)
		assert.EqualError(t, err, "namespace kube-system has no valid UID: the server is not a Kubernetes API server", reason)
	}
	gate, gone := gated(t, user(t))
	gate.Shut()
	_, err = r.Identify(t.Context(), gone)
	assert.EqualError(t, err, "connection refused")
}
