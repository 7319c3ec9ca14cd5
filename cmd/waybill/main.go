/*
Waybill, also `kubectl waybill`, lets people see and control what Waybill keeps
running in their clusters.
*/
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"waybill.dev/waybill/cmd/internal/cli"
	"waybill.dev/waybill/cmd/internal/startup"
	"waybill.dev/waybill/sync/render/isolated"
)

// version is set by the linker.
var version string

func main() {
	isolated.Main() // renders for the dashboard, if that has started it
	silenceLibraries()
	startup.LimitMemory(0) // in a container, say in CI
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(run(os.Args, streams))
}

// silenceLibraries keeps library logs meant for operators off the terminal. It must be called once,
// before anything else runs.
func silenceLibraries() {
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
}

// run runs the program with its arguments, the first of which is its own name, and returns
// the exit code.
func run(args []string, streams genericiooptions.IOStreams) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends a program that does not heed the first
	root := newRoot(cli.NewEnv(streams, version), args[0])
	root.SetArgs(args[1:])
	return cli.Finish(root.ExecuteContext(ctx), streams.ErrOut)
}
