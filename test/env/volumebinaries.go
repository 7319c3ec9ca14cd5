package env

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// snapshotAPI is the module whose folder config/crd holds the CustomResourceDefinitions of
// snapshots.
const snapshotAPI = "github.com/kubernetes-csi/external-snapshotter/client/v8"

var volumeControllers = programSet{
	name:    "volume controllers",
	folder:  "volumes",
	module:  volumesModule,
	version: "github.com/kubernetes-csi/external-snapshotter/v8",
	programs: []program{
		{"csi-provisioner", "github.com/kubernetes-csi/external-provisioner/v6/cmd/csi-provisioner", "csi-provisioner"},
		{"csi-snapshotter", "github.com/kubernetes-csi/external-snapshotter/v8/cmd/csi-snapshotter", "csi-snapshotter"},
		{"snapshot-controller", "github.com/kubernetes-csi/external-snapshotter/v8/cmd/snapshot-controller", "snapshot-controller"},
	},
	files: copySnapshotCRDs,
}

// VolumeBinaries returns the directory that holds csi-provisioner, csi-snapshotter and
// snapshot-controller, and the folder crds with the CustomResourceDefinitions of VolumeSnapshots and
// VolumeGroupSnapshots. As Binaries does, it builds them where they are missing, from the module
// test/controlplane/volumes into bin/k8s/volumes, whatever KUBEBUILDER_ASSETS says.
func VolumeBinaries(ctx context.Context) (string, error) {
	return volumeControllers.ready(ctx)
}

// copySnapshotCRDs copies the CustomResourceDefinitions that come with the API of snapshots.
func copySnapshotCRDs(ctx context.Context, module, dir string) error {
	api, err := goCommand(ctx, module, "list", "-m", "-f", "{{.Dir}}", snapshotAPI)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(api, "config", "crd", "*.storage.k8s.io_*.yaml"))
	if err != nil {
		return fmt.Errorf("list CRDs of snapshots: %w", err)
	}
	if len(files) == 0 {
		return fmt.Errorf("list CRDs of snapshots: %s has none", api)
	}
	target := filepath.Join(dir, "crds")
	if err := os.RemoveAll(target); err != nil {
		return fmt.Errorf("remove old CRDs of snapshots: %w", err)
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return fmt.Errorf("create directory for CRDs of snapshots: %w", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read CRD: %w", err)
		}
		if err := os.WriteFile(filepath.Join(target, filepath.Base(file)), content, 0o600); err != nil {
			return fmt.Errorf("copy CRD: %w", err)
		}
	}
	return nil
}
