package volumes_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/test/env/volumes"
)

func TestExec_saysHowItEnded(t *testing.T) {
	w := newWorld(t)
	w.run("app")
	for name, c := range map[string]struct {
		script, stdout, stderr string
		code                   int
	}{
		"success":           {"echo fine", "fine\n", "", 0},
		"exit code":         {"echo out; echo wrong >&2; exit 3", "out\n", "wrong\n", 3},
		"signal":            {"kill -TERM $$", "", "", 143},
		"environment":       {"echo $HOSTNAME", "app\n", "", 0},
		"more than a frame": {"head -c 1000000 /dev/zero | tr '\\0' x", strings.Repeat("x", 1_000_000), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := w.Exec(t.Context(), w.namespace, "app", c.script)
			require.NoError(t, err)
			assert.Equal(t, volumes.Result{Stdout: c.stdout, Stderr: c.stderr, Code: c.code}, result)
		})
	}
}

func TestExec_needsARunningContainer(t *testing.T) {
	w := newWorld(t)
	_, err := w.Exec(t.Context(), w.namespace, "nobody", "true")
	assert.ErrorContains(t, err, "nobody")
}

func TestExec_onlyByTheAPIServer(t *testing.T) {
	w := newWorld(t)
	nodes := &corev1.NodeList{}
	require.NoError(t, w.List(t.Context(), nodes))
	config, err := w.cluster.AddUser("alice", "system:masters")
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	require.NoError(t, err)
	servers := x509.NewCertPool()
	require.True(t, servers.AppendCertsFromPEM(config.CAData))
	address := fmt.Sprintf("127.0.0.1:%d", nodes.Items[0].Status.DaemonEndpoints.KubeletEndpoint.Port)
	// With a later version, the client would only learn when it reads.
	_, err = tls.Dial("tcp", address, &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: servers, MaxVersion: tls.VersionTLS12})
	assert.ErrorContains(t, err, "remote error: tls: bad certificate")
}

// What kubectl executes goes the same way as what a program does.
func TestExec_byKubectl(t *testing.T) {
	w := newWorld(t)
	w.run("app")
	out, err := w.cluster.Kubectl(t.Context(), "hello", "exec", "--namespace="+w.namespace, "app", "-i", "--", "cat")
	require.NoError(t, err)
	assert.Equal(t, "hello", out)
}

func TestExec_endsWithItsContainer(t *testing.T) {
	w := newWorld(t)
	pod := w.run("app")
	ended := make(chan volumes.Result, 1)
	go func() {
		result, err := w.Exec(t.Context(), w.namespace, "app", "touch started; sleep 600")
		assert.NoError(t, err)
		ended <- result
	}()
	require.Eventually(t, func() bool {
		result, err := w.Exec(t.Context(), w.namespace, "app", "test -e started")
		return err == nil && result.Code == 0
	}, limit, often)
	before := pod.DeepCopy()
	pod.Status.ContainerStatuses[0].RestartCount = 1
	require.NoError(t, w.Status().Patch(t.Context(), pod, client.MergeFrom(before)))
	assert.Equal(t, 137, (<-ended).Code)
}
