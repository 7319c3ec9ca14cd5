package env_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/env"
)

// victimVariable makes this test binary a process that starts a cluster and then
// waits to be killed, or with "reap" one that only begins and ends.
const victimVariable = "WAYBILL_ENV_VICTIM"

func victim(role string) {
	options := env.Command{Name: "sleep", Path: "sleep", Args: []string{"600"}}
	if role == "reap" {
		if _, err := env.StartProcess(options); err != nil {
			fmt.Println("failed:", err)
		}
		return
	}
	c, err := env.StartCluster(context.Background(), env.Options{NoControllers: true})
	if err != nil {
		fmt.Println("failed:", err)
		return
	}
	fmt.Println("started:", c.Address(), c.KubeconfigFile())
	_, _ = io.Copy(io.Discard, os.Stdin) // until killed
}

func TestSession_endsWithItsProcess(t *testing.T) {
	for name, tt := range map[string]struct {
		signal syscall.Signal
		reason string
	}{
		"Ctrl-C": {syscall.SIGINT, "the handler of Main stops everything"},
		"kill":   {syscall.SIGKILL, "the kernel kills the children, the next process removes the files"},
	} {
		t.Run(name, func(t *testing.T) {
			address, file, end := startVictim(t)
			require.FileExists(t, file)
			end(tt.signal)

			require.Eventually(t, func() bool {
				conn, err := net.Dial("tcp", address)
				if err == nil {
					_ = conn.Close()
				}
				return err != nil
			}, limit, often, tt.reason)
			reap := exec.CommandContext(t.Context(), os.Args[0])
			reap.Env = append(os.Environ(), victimVariable+"=reap")
			out, err := reap.CombinedOutput()
			require.NoError(t, err, string(out))
			assert.NoFileExists(t, file, tt.reason)
		})
	}
}

// startVictim returns where the victim's API server and kubeconfig are, and a
// function that signals it and waits for its end.
func startVictim(t *testing.T) (address, file string, end func(syscall.Signal)) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victimVariable+"=cluster")
	_, err := cmd.StdinPipe() // stays open until the victim has ended
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	fields := strings.Fields(line)
	require.Equal(t, "started:", fields[0], line)
	return fields[1], fields[2], func(s syscall.Signal) {
		require.NoError(t, cmd.Process.Signal(s))
		assert.Error(t, cmd.Wait())
	}
}
