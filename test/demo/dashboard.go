package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/program"
)

// login is an address that `waybill dashboard` prints.
var login = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+/login\?token=\S+`)

// dashboard starts `waybill dashboard` with a kubeconfig, and returns the address that lets in one browser. It runs until env.StopAll.
func (s *stage) dashboard(ctx context.Context, kubeconfig string) (string, error) {
	output, input := io.Pipe()
	process, err := env.StartProcess(env.Command{
		Name: "waybill-dashboard", Path: filepath.Join(s.bin, program.CLI), Args: []string{"dashboard", "--no-browser", "--kubeconfig=" + kubeconfig}, Output: input,
	})
	if err != nil {
		return "", err
	}
	printed := make(chan string, 1)
	go func() {
		for lines := bufio.NewScanner(output); lines.Scan(); {
			if at := login.FindString(lines.Text()); at != "" {
				printed <- at
			}
		}
	}()
	select {
	case at := <-printed:
		return at, nil
	case <-process.Done():
		log, _ := process.Log() // what it said, if that can be read
		return "", fmt.Errorf("waybill dashboard has ended: %w\n%s", cmp.Or(process.Err(), errors.New("exit status 0")), log)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
