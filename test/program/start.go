package program

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"waybill.dev/waybill/test/env"
)

// Options defines which program to start, and against which cluster.
type Options struct {
	// Name of the program: Sync, Webhook or Dashboard. Required.
	Name string
	// As is the name of the process in errors and log files. Default: Name.
	As string
	// Bin is the folder that Build returned. Required.
	Bin string
	// Kubeconfig is the file of the cluster that the program serves. Required.
	Kubeconfig string
	// Args are further arguments.
	Args []string
}

// Start starts a program and returns when it reports that it is ready, for which it has env.Limit.
// The program ends with this process, or with env.StopAll.
func Start(ctx context.Context, o Options) (*env.Process, error) {
	if o.As == "" {
		o.As = o.Name
	}
	health, err := env.FreeAddress()
	if err != nil {
		return nil, err
	}
	args := []string{
		"--kubeconfig=" + o.Kubeconfig,
		"--health-probe-bind-address=" + health,
		"--metrics-bind-address=0",
	}
	if o.Name == Sync {
		args = append(args, "--allow-local-sources") // the servers of tests are on this machine
	}
	process, err := env.StartProcess(env.Command{
		Name: o.As, Path: filepath.Join(o.Bin, o.Name), Args: append(args, o.Args...),
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, env.Limit)
	defer cancel()
	if err := ready(ctx, process, "http://"+health+"/readyz"); err != nil {
		log, logErr := process.Log()
		return nil, errors.Join(fmt.Errorf("start %s: %w; its log:\n%s", o.As, err, Tail(log, 40)), logErr, process.Kill())
	}
	return process, nil
}

// ready polls url until the program is ready, or until the process or ctx ends.
func ready(ctx context.Context, process *env.Process, url string) error {
	client := &http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask(ctx, client, url)
		if err == nil {
			return nil
		}
		select {
		case <-process.Done():
			return fmt.Errorf("it ended: %w", process.Err())
		case <-ctx.Done():
			return fmt.Errorf("it is not ready: %w: %w", ctx.Err(), err)
		case <-tick.C:
		}
	}
}

func ask(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, response.Status)
	}
	return nil
}

// Cache returns a new folder for --cache-dir, and the function that removes it.
func Cache() (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp("", "waybill-cache-")
	if err != nil {
		return "", nil, fmt.Errorf("create cache: %w", err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil
}
