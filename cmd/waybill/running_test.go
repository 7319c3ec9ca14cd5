package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"waybill.dev/waybill/cmd/internal/cli"
)

// running is a run of the program that goes on until it is interrupted.
type running struct {
	out, errOut transcript
	interrupt   context.CancelFunc
	done        chan int
}

// transcript is what a program has written so far.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *transcript) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// begin starts the program with a kubeconfig. It is interrupted at the end of the test at the latest.
func begin(t *testing.T, kubeconfig string, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{interrupt: cancel, done: make(chan int, 1)}
	root := newRoot(cli.NewEnv(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &r.out, ErrOut: &r.errOut}, ""), "waybill")
	root.SetArgs(append(args, "--kubeconfig", kubeconfig))
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		r.done <- cli.Finish(root.ExecuteContext(ctx), &r.errOut)
	}()
	t.Cleanup(func() { cancel(); <-stopped })
	return r
}

// prints waits until the program has written a text.
func (r *running) prints(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(r.out.String(), text) }, limit, often,
		"no %q in\n%s\n%s", text, &r.out, &r.errOut)
}

// stop interrupts the program, and returns its exit code.
func (r *running) stop() int {
	r.interrupt()
	return <-r.done
}
