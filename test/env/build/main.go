/*
Build builds the control plane that tests, demo and benchmarks run against, so that the minutes
that it takes on a fresh machine do not count towards any test's time limit.
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
	_, err := env.Binaries(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}
