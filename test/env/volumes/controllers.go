package volumes

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"waybill.dev/waybill/test/env"
	"waybill.dev/waybill/test/env/csidriver"
)

// The defaults of these controllers are for clusters with many drivers: five requests a second, and
// retries after up to five minutes.
func (v *Volumes) startControllers(bin string) error {
	driver := []string{"--csi-address=" + v.socket(), "--timeout=1m", "--extra-create-metadata"}
	retries := []string{"--retry-interval-start=100ms", "--retry-interval-max=1s"}
	limits := []string{"--kube-api-qps=500", "--kube-api-burst=1000", "--worker-threads=50"}
	groups := []string{"--feature-gates=CSIVolumeGroupSnapshot=true"}
	for _, controller := range []struct {
		name string
		args [][]string
	}{
		{"snapshot-controller", [][]string{retries, limits, groups}},
		{"csi-snapshotter", [][]string{driver, retries, limits, groups}},
		{"csi-provisioner", [][]string{driver, retries, limits}},
	} {
		args, err := v.identity(controller.name)
		if err != nil {
			return err
		}
		for _, a := range controller.args {
			args = append(args, a...)
		}
		p, err := env.StartProcess(env.Command{Name: controller.name, Path: filepath.Join(bin, controller.name), Args: args})
		if err != nil {
			return err
		}
		v.controllers = append(v.controllers, p)
	}
	return nil
}

// identity returns the arguments that make a controller a user of its own, so that requests can be told
// apart. It has all permissions.
func (v *Volumes) identity(name string) ([]string, error) {
	config, err := v.cluster.AddUser("system:"+name, "system:masters")
	if err != nil {
		return nil, err
	}
	content, err := env.Kubeconfig(name, config)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(v.dir, name+".kubeconfig")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return nil, fmt.Errorf("write kubeconfig of %s: %w", name, err)
	}
	return []string{"--kubeconfig=" + path}, nil
}

// report writes what the controllers said to the output of a test that failed, and fails a test that one
// of them did not survive.
func (v *Volumes) report(t testing.TB) {
	for _, p := range v.controllers {
		select {
		case <-p.Done():
			t.Errorf("a controller of %s ended: %v", csidriver.Name, p.Err())
		default:
		}
		if !t.Failed() {
			continue
		}
		log, err := p.Log()
		if err != nil {
			log = err.Error()
		}
		t.Log(log)
	}
}
