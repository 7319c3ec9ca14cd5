/*
Pool runs a command, such as go test, and lends control planes to the tests in it: there are no more
of them than tests need at the same time, instead of some for each package.
*/
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"waybill.dev/waybill/test/env"
)

func main() {
	log.SetLogger(logr.Discard()) // the command's output is what is to be read
	env.StopOnSignal()
	err := run(os.Args[1:])
	env.StopAll()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		os.Exit(ended.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pool:", err)
		os.Exit(1)
	}
}

func run(command []string) error {
	if len(command) == 0 {
		return errors.New("no command is given")
	}
	pool, err := env.NewPool()
	if err != nil {
		return err
	}
	defer pool.Close()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), pool.Environment())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	fmt.Fprintln(os.Stderr, "pool:", pool.Summary())
	return err
}
