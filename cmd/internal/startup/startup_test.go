package startup_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/cmd/internal/startup"
)

func TestExitCode(t *testing.T) {
	for reason, tc := range map[string]struct {
		err  error
		code int
		says string
	}{
		"all went well":               {nil, 0, ""},
		"help was asked for, and got": {fmt.Errorf("parse: %w", pflag.ErrHelp), 0, ""},
		"it says who failed, and why": {errors.New("out of luck"), 1, "waybill-x: out of luck\n"},
	} {
		var stderr strings.Builder
		assert.Equal(t, tc.code, startup.ExitCode(&stderr, "waybill-x", tc.err), reason)
		assert.Equal(t, tc.says, stderr.String(), reason)
	}
}

func TestParse(t *testing.T) {
	for reason, tc := range map[string]struct {
		args []string
		says string
	}{
		"a flag":                       {[]string{"--level=debug"}, ""},
		"an unknown flag":              {[]string{"--nope"}, "unknown flag: --nope"},
		"an argument is no flag":       {[]string{"now"}, `unexpected argument "now"`},
		"nor is one behind a flag":     {[]string{"--level=debug", "now"}, `unexpected argument "now"`},
		"who asks for help is told so": {[]string{"--help"}, pflag.ErrHelp.Error()},
	} {
		flags := pflag.NewFlagSet("waybill-x", pflag.ContinueOnError)
		flags.SetOutput(&strings.Builder{})
		level := flags.String("level", "info", "how much to say")
		err := startup.Parse(flags, tc.args)
		if tc.says != "" {
			assert.EqualError(t, err, tc.says, reason)
			continue
		}
		require.NoError(t, err, reason)
		assert.Equal(t, "debug", *level, reason)
	}
}

func TestLoadConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(`
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:6443"}}]
contexts: [{name: c, context: {cluster: c}}]
current-context: c
`), 0o600))
	config, err := startup.LoadConfig(file, "waybill-x", "0.1.0")
	require.NoError(t, err)
	assert.Equal(t, "https://127.0.0.1:6443", config.Host)
	assert.Equal(t, "waybill-x/0.1.0", config.UserAgent)
	assert.Negative(t, config.QPS, "no rate limit of the client's own")

	_, err = startup.LoadConfig(file+".missing", "waybill-x", "0.1.0")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "load kubeconfig: ")

	t.Setenv("KUBECONFIG", file+".missing")
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	_, err = startup.LoadConfig("", "waybill-x", "0.1.0")
	require.EqualError(t, err, "load kubeconfig: $KUBECONFIG: stat "+file+".missing: no such file or directory", "in a Pod, too")

	t.Setenv("KUBECONFIG", file+".missing:"+file)
	config, err = startup.LoadConfig("", "waybill-x", "0.1.0")
	require.NoError(t, err)
	assert.Equal(t, "https://127.0.0.1:6443", config.Host)
}

// A program that is started to see what it does leaves the cluster at hand alone.
func TestLoadConfig_asksForOne(t *testing.T) {
	home := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(home, ".kube"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".kube", "config"), []byte("apiVersion: v1\nkind: Config\n"), 0o600))
	t.Setenv("HOME", home)
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := startup.LoadConfig("", "waybill-x", "0.1.0")
	require.EqualError(t, err, "load kubeconfig: not running in a Pod, and neither --kubeconfig nor $KUBECONFIG is given")
}
