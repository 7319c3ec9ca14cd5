package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/webhooks/registration"
)

func TestMain(m *testing.M) { env.Main(m) }

func TestRun_refusesWhatCannotWork(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(`{clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}`), 0o600))
	for reason, tc := range map[string]struct {
		args []string
		says string
	}{
		"unknown flag":                     {[]string{"--nope"}, "unknown flag: --nope"},
		"an argument":                      {[]string{"now"}, `unexpected argument "now"`},
		"API servers ask for TLS":          {[]string{"--url=http://127.0.0.1:9443"}, "http"},
		"a chart's configurations go with": {[]string{"--unregister-on-exit"}, "--unregister-on-exit needs --url"},
		"no such file":                     {[]string{"--kubeconfig=/does/not/exist"}, "load kubeconfig: stat /does/not/exist"},
		"a port is missing":                {[]string{"--kubeconfig=" + kubeconfig, "--url=https://127.0.0.1:1", "--listen=127.0.0.1"}, "parse listen address: address 127.0.0.1: missing port in address"},
		"names that nobody signs":          {[]string{"--client-name=kube-apiserver"}, "--client-ca-file, --client-name: names of clients need the file"},
		"no authority":                     {[]string{"--client-ca-file=" + kubeconfig}, "contains no PEM certificate"},
		"no kubeconfig is read without":    {[]string{"--allow-kubeconfig-insecure"}, "--allow-kubeconfig-insecure needs --remote-dry-run"},
	} {
		assert.ErrorContains(t, run(t.Context(), tc.args), tc.says, reason)
	}
}

// C38: kubeconfigs are read where templates are to be tried out, insecure ones where that is
// allowed, and no program is ever run.
func TestOptions_kubeconfigParser(t *testing.T) {
	const (
		insecure = `clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: t}}]`
		exec = `clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}}}]`
		current = "\napiVersion: v1\nkind: Config\ncontexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n"
	)
	for reason, tc := range map[string]struct {
		args       []string
		kubeconfig string
		says       string
	}{
		"certificates are checked":   {nil, insecure, "insecure-skip-tls-verify"},
		"unless it is said not to":   {[]string{"--allow-kubeconfig-insecure"}, insecure, ""},
		"a program is never run":     {nil, exec, "exec"},
		"not even then is it either": {[]string{"--allow-kubeconfig-insecure"}, exec, "exec"},
	} {
		o, err := parse(append([]string{"--remote-dry-run"}, tc.args...))
		require.NoError(t, err)
		_, err = o.kubeconfigParser()([]byte(tc.kubeconfig + current))
		if tc.says == "" {
			assert.NoError(t, err, reason)
			continue
		}
		assert.ErrorContains(t, err, tc.says, reason)
	}
	o, err := parse(nil)
	require.NoError(t, err)
	assert.Nil(t, o.kubeconfigParser(), "no kubeconfig is read where none is asked for")
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
	cluster := env.Start(t, env.Options{Name: "webhook-program", Own: true, CRDs: []string{"../../charts/waybill/crds"}})
	_, ended := start(t, cluster)
	require.NoError(t, cluster.Rewind(t.Context(), func() { assertRegistersAgain(t, cluster) }))
	select {
	case err := <-ended:
		require.ErrorContains(t, err, "restart to read everything again: the API server went back in time")
	case <-time.After(env.Limit):
		require.Fail(t, "it goes on with what it has seen of an API server that was restored")
	}

	stop, ended := start(t, cluster)
	stop()
	require.NoError(t, <-ended)
}

// start runs the program until stop is called, and returns when it is ready.
func start(t *testing.T, cluster *env.Cluster) (stop func(), ended <-chan error) {
	t.Helper()
	listen, health := env.Address(t), env.Address(t)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		result <- run(ctx, []string{
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
	}, env.Limit, 20*time.Millisecond)
	return cancel, result
}

// assertRegistersAgain: the server puts back what it has registered, which takes watches that show changes.
func assertRegistersAgain(t *testing.T, cluster *env.Cluster) {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(cluster.RESTConfig())
	require.NoError(t, err)
	configurations := clientset.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err = configurations.Patch(t.Context(), registration.ConfigurationName, types.JSONPatchType, []byte(`[{"op": "remove", "path": "/webhooks"}]`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		found, err := configurations.Get(t.Context(), registration.ConfigurationName, metav1.GetOptions{})
		return err == nil && len(found.Webhooks) > 0
	}, env.Limit, 20*time.Millisecond)
}
