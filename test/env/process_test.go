package env_test

import (
	"bytes"
	"context"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/env"
)

func TestProcess_stops(t *testing.T) {
	for name, tt := range map[string]struct {
		script string
		stop   func(t *testing.T, p *env.Process)
		signal syscall.Signal
	}{
		"when asked": {
			script: "echo ready; exec sleep 600",
			stop:   func(t *testing.T, p *env.Process) { require.NoError(t, p.Stop(t.Context())) },
			signal: syscall.SIGTERM,
		},
		"killed, when it does not listen": {
			script: "trap '' TERM; echo ready; while :; do sleep 600; done",
			stop: func(t *testing.T, p *env.Process) {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				require.ErrorIs(t, p.Stop(ctx), context.DeadlineExceeded)
			},
			signal: syscall.SIGKILL,
		},
		"killed": {
			script: "echo ready; exec sleep 600",
			stop:   func(t *testing.T, p *env.Process) { require.NoError(t, p.Kill()) },
			signal: syscall.SIGKILL,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := env.StartProcess(env.Command{Name: "shell", Path: "/bin/sh", Args: []string{"-c", tt.script}})
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				log, err := p.Log()
				return err == nil && log == "ready\n"
			}, limit, often)
			tt.stop(t, p)
			var exit *exec.ExitError
			require.ErrorAs(t, p.Err(), &exit)
			assert.Equal(t, tt.signal, exit.Sys().(syscall.WaitStatus).Signal())
			require.NoError(t, p.Kill(), "again")
		})
	}
}

func TestProcess_output(t *testing.T) {
	var out bytes.Buffer
	p, err := env.StartProcess(env.Command{
		Name: "shell", Path: "/bin/sh", Args: []string{"-c", "echo $GREETING; exit 3"},
		Env: []string{"GREETING=hello"}, Output: &out,
	})
	require.NoError(t, err)
	<-p.Done()
	require.ErrorContains(t, p.Err(), "3")
	assert.Equal(t, "hello\n", out.String())
	log, err := p.Log()
	require.NoError(t, err)
	assert.Equal(t, "hello\n", log)
}
