package main

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/env"
)

func TestMain(m *testing.M) { env.Main(m) }

func TestRun_refusesWhatCannotWork(t *testing.T) {
	for reason, tc := range map[string]struct {
		args []string
		says string
	}{
		"unknown flag":            {[]string{"--nope"}, "unknown flag: --nope"},
		"an argument is no flag":  {[]string{"gitsync"}, `unexpected argument "gitsync"`},
		"unknown controller":      {[]string{"--controllers=gitsync,gitsink"}, `--controllers: "gitsink" is unknown, use agent, all, data, driver, hub, gitsync,`},
		"no controller":           {[]string{"--controllers="}, "--controllers: name at least one of agent, all,"},
		"no such file":            {[]string{"--kubeconfig=/does/not/exist"}, "load kubeconfig: stat /does/not/exist: no such file or directory"},
		"not the type of a value": {[]string{"--workers=many"}, `invalid argument "many" for "--workers"`},
	} {
		assert.ErrorContains(t, run(t.Context(), tc.args), tc.says, reason)
	}
}

func TestParse_defaults(t *testing.T) {
	o, err := parse(nil)
	require.NoError(t, err)
	assert.Equal(t, "waybill-system", o.systemNamespace)
	assert.Equal(t, []string{"all"}, o.controllers)
	assert.Equal(t, "waybill-sync", o.leaderID)
	assert.False(t, o.leaderElect)
	assert.Equal(t, ":8080", o.metricsAddress)
	assert.Equal(t, ":8081", o.healthAddress)
	assert.False(t, o.allowExec)
	assert.False(t, o.allowInsecure)
	assert.False(t, o.allowLocalSources)
	assert.Equal(t, 10*time.Second, o.shutdownGrace)
	assert.Equal(t, "10Gi", o.cacheSize.String())
	assert.Equal(t, "384Mi", o.renderMemory.String())
}

func TestParse_refuses(t *testing.T) {
	for flag, says := range map[string]string{
		"--workers=-1":                  "--workers and --actions-per-cluster cannot be negative",
		"--actions-per-cluster=-1":      "--workers and --actions-per-cluster cannot be negative",
		"--cache-size=0":                "--cache-size must be positive",
		"--render-memory=1Mi":           "--render-memory must be at least 64Mi",
		"--cache-size=much":             `invalid argument "much" for "--cache-size"`,
		"--shutdown-grace=-1s":          "--shutdown-grace cannot be negative",
		"--default-service-account=a:b": `--default-service-account: invalid name "a:b"`,
		"--cluster-selector=region in ": "--cluster-selector: unable to parse requirement",
		"--credentials-namespace=all":   `--credentials-namespace: "all" is unknown, use system or cluster`,
		"--watch-namespace=team-a":      "--watch-namespace is for the role driver: set --controllers=driver",
	} {
		_, err := parse([]string{flag})
		assert.ErrorContains(t, err, says, flag)
	}
}

func TestParse_help(t *testing.T) {
	stderr := os.Stderr
	t.Cleanup(func() { os.Stderr = stderr })
	read, write, err := os.Pipe()
	require.NoError(t, err)
	os.Stderr = write
	_, err = parse([]string{"--help"})
	require.NoError(t, write.Close())
	require.ErrorIs(t, err, pflag.ErrHelp)
	text, err := io.ReadAll(read)
	require.NoError(t, err)
	for _, flag := range []string{"--controllers", "--leader-election-id", "--log-level"} {
		assert.Contains(t, string(text), flag)
	}
}

// K59: a driver of one namespace reads credentials there.
func TestParse_watchNamespace(t *testing.T) {
	o, err := parse([]string{"--controllers=driver", "--watch-namespace=team-a"})
	require.NoError(t, err)
	assert.Equal(t, "cluster", o.credentials)
	o, err = parse([]string{"--controllers=driver"})
	require.NoError(t, err)
	assert.Equal(t, "system", o.credentials)
}

// C44: a role is its controllers, and one controller can be named twice.
func TestSelectControllers(t *testing.T) {
	selected, err := selectControllers([]string{"hub", "gitsync", "application"})
	require.NoError(t, err)
	assert.Equal(t, map[string]bool{
		"gitsync": true, "applicationdefinition": true, "sourcecredential": true, "valuesschema": true, "application": true,
	}, selected)
	assert.False(t, onlyLocal(selected))
	selected, err = selectControllers([]string{"agent", "data"})
	require.NoError(t, err)
	assert.True(t, onlyLocal(selected))
}
