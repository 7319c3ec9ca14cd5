package env

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// Kubectl runs kubectl as the administrator, with input as its standard input, and returns its
// standard output. The error contains its standard error.
func (c *Cluster) Kubectl(ctx context.Context, input string, args ...string) (string, error) {
	// By default, what kubectl learned of an earlier cluster at the same address would be believed.
	always := []string{"--kubeconfig=" + c.KubeconfigFile(), "--cache-dir=" + filepath.Join(c.home, "kubectl-cache")}
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "kubectl"), append(always, args...)...)
	cmd.Stdin = strings.NewReader(input)
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(failed.String()))
	}
	return out.String(), nil
}
