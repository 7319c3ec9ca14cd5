package main

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/env"
)

func TestMain(m *testing.M) { env.Main(m) }

func TestRun_refusesWhatCannotWork(t *testing.T) {
	for reason, args := range map[string][]string{
		"unknown flag":                     {"--nope"},
		"an argument":                      {"now"},
		"API servers ask for TLS":          {"--url=http://127.0.0.1:9443"},
		"a chart's configurations go with": {"--unregister-on-exit"},
		"no such file":                     {"--kubeconfig=/does/not/exist"},
		"a port is missing":                {"--url=https://127.0.0.1", "--listen=127.0.0.1"},
	} {
		require.Error(t, run(t.Context(), args), reason)
	}
}

func TestParse_defaults(t *testing.T) {
	o, err := parse(nil)
	require.NoError(t, err)
	assert.Equal(t, "waybill-system", o.systemNamespace)
	assert.Equal(t, "waybill-webhook", o.service)
	assert.Equal(t, ":9443", o.listen)
}

// The program as the demo starts it: on its own outside of a cluster, with nothing prepared.
func TestRun_becomesReady(t *testing.T) {
	cluster := env.Start(t, env.Options{Name: "webhook-program", CRDs: []string{"../../charts/waybill/crds"}})
	listen, health := freeAddress(t), freeAddress(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{
			"--kubeconfig=" + cluster.KubeconfigFile(), "--url=https://" + listen, "--listen=" + listen,
			"--health-probe-bind-address=" + health, "--metrics-bind-address=0", "--drain=0s", "--unregister-on-exit", "--log-level=error",
		})
	}()
	require.Eventually(t, func() bool {
		resp, err := http.Get("http://" + health + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, time.Minute, 20*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
