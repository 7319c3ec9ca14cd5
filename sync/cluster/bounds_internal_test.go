package cluster

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// A server that is not engaged is bounded as well, and is left alone by the client to which it has sent too much.
func TestBounds_refuse(t *testing.T) {
	const podPath = "/api/v1/namespaces/a/pods/web"
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   string
		cut    bool
	}{
		"Redirect":    {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/api/v1/secrets", http.StatusFound) }, "with a redirect, which is not followed", false},
		"EmptyObject": {sends(`{"kind":"PodList","apiVersion":"v1","items":[{}`, `,{}`), "the decoded size of the response to GET " + configMapPath + " exceeds the limit of 80 MiB", true},
		"Text":        {sends(`{"kind":"PodList","apiVersion":"v1","metadata":{"name":"`, `x`), "the response to GET " + configMapPath + " exceeds the limit of 32 MiB", true},
	} {
		t.Run(name, func(t *testing.T) {
			server := newHostile(t, map[string]http.HandlerFunc{
				configMapPath: tc.answer,
				podPath: func(w http.ResponseWriter, _ *http.Request) {
					_, _ = io.WriteString(w, `{"kind":"Pod","apiVersion":"v1"}`)
				},
			})
			config, err := NewBounds().Bound(server.config())
			require.NoError(t, err)
			client, err := kubernetes.NewForConfig(config)
			require.NoError(t, err)
			_, err = client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
			require.ErrorContains(t, err, tc.want)
			_, err = client.CoreV1().Pods("a").Get(t.Context(), "web", metav1.GetOptions{})
			if !tc.cut {
				require.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, tc.want, "nothing else is asked")
		})
	}
}

// A log may be as long as it is; its reader stops. The text of an error is read as a whole, and so is cut.
func TestBounds_logs(t *testing.T) {
	const log = "/api/v1/namespaces/a/pods/web/log"
	line := strings.Repeat("x", 63<<10) + "\n"
	lines := int(defaultLimits().body)/len(line) + 1
	failing, moved := false, false
	server := newHostile(t, map[string]http.HandlerFunc{log: typed("text/plain", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case moved:
			http.Redirect(w, r, "/api/v1/namespaces/kube-system", http.StatusFound)
		case failing:
			w.WriteHeader(http.StatusBadRequest)
			flood(w, "", "y")
		default:
			for range lines {
				_, _ = io.WriteString(w, line)
			}
		}
	})})
	config, err := NewBounds().Bound(server.config())
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	read := func() (int64, error) {
		stream, err := client.CoreV1().Pods("a").GetLogs("web", &corev1.PodLogOptions{}).Stream(t.Context())
		if err != nil {
			return 0, err
		}
		defer stream.Close()
		return io.Copy(io.Discard, stream)
	}
	n, err := read()
	require.NoError(t, err)
	assert.Equal(t, int64(lines*len(line)), n)
	failing = true
	_, err = read()
	require.Error(t, err)
	assert.LessOrEqual(t, len(err.Error()), int(defaultLimits().errorBody)+1024)
	moved = true
	_, err = read()
	require.ErrorContains(t, err, "with a redirect, which is not followed")
}
