package bench

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/program"
)

// maxRSS is the maximum peak memory of a process, in MiB.
const maxRSS = 150

// waybill is a process of Waybill.
type waybill struct{ *env.Process }

// startSync starts a fresh waybill-sync as it runs beside a hub.
func startSync(b *testing.B, h *hub, args ...string) waybill {
	b.Helper()
	return startRoles(b, h, "hub,driver", args...)
}

// startAgent starts a fresh waybill-sync as it runs in a user cluster: a separate process, which
// has its own rows (C44).
func startAgent(b *testing.B, h *hub) waybill {
	b.Helper()
	return startRoles(b, h, "agent")
}

func startRoles(b *testing.B, h *hub, roles string, args ...string) waybill {
	b.Helper()
	bin, err := program.Build(b.Context(), program.Sync)
	require.NoError(b, err)
	process, err := program.Start(b.Context(), program.Options{
		Name: program.Sync, Bin: bin, Kubeconfig: h.kubeconfigOf(b, syncUser),
		Args: append([]string{"--controllers=" + roles, "--cache-dir=" + filepath.Join(b.TempDir(), "cache")}, args...),
	})
	require.NoError(b, err)
	return stopAfterRow(b, process)
}

// stopAfterRow stops a process at the end of its row, and shows the end of its log if the row failed.
func stopAfterRow(b *testing.B, process *env.Process) waybill {
	b.Helper()
	b.Cleanup(func() {
		if log, err := process.Log(); b.Failed() && err == nil {
			b.Log(program.Tail(log, logLines))
		}
		require.NoError(b, process.Kill())
	})
	return waybill{process}
}

// logLines is how many lines of a log a failure shows.
const logLines = 30

// kubeconfigOf writes the kubeconfig of a user with all permissions.
func (h *hub) kubeconfigOf(b *testing.B, user string) string {
	b.Helper()
	config, err := h.AddUser(user, "system:masters")
	require.NoError(b, err)
	content, err := env.Kubeconfig(h.Name(), config)
	require.NoError(b, err)
	path := filepath.Join(b.TempDir(), user+".kubeconfig")
	require.NoError(b, os.WriteFile(path, content, 0o600))
	return path
}

// peak returns the peak memory of the process, in MiB.
func (w waybill) peak(b *testing.B) float64 {
	b.Helper()
	bytes, err := w.PeakMemory()
	require.NoError(b, err)
	return float64(bytes) / (1 << 20)
}

// rss adds the peak memory, a figure of every row.
func (s *results) rss(w waybill) { s.atMost("rss", w.peak(s.b), "MiB", maxRSS) }
