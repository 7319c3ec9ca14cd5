/*
Build builds the control plane that tests, demo and benchmarks run against, and the controllers of
volumes and snapshots, so that the minutes that it takes on a fresh machine do not count towards any
test's time limit.
*/
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"waybill.dev/waybill/test/env"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := build(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func build(ctx context.Context) error {
	if _, err := env.Binaries(ctx); err != nil {
		return err
	}
	_, err := env.VolumeBinaries(ctx)
	return err
}
