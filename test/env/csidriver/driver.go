package csidriver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registerv1 "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const (
	// Name is the driver's name, as StorageClasses and VolumeSnapshotClasses have it.
	Name = "files.csi.waybill.dev"
	// TopologyKey is the label of Nodes by which volumes say where they can be used.
	TopologyKey = "topology." + Name + "/node"
)

// Writers are the processes that write to volumes.
type Writers interface {
	// Pause returns when nothing writes to the folders, nor will before resume is called.
	Pause(folders ...string) (resume func(), err error)
}

// Options configures a Driver. Those without a comment about it are required.
type Options struct {
	// Dir is an existing directory for volumes and snapshots.
	Dir string
	// Node is the name of the Node that volumes can be used on.
	Node string
	// Writers are paused while their volumes are copied.
	Writers Writers
	// Mounter adds the service for a real Node. Optional.
	Mounter Mounter
}

// Driver is a CSI driver. It remembers volumes and snapshots for as long as the process lives.
type Driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedGroupControllerServer
	options Options
	server  *grpc.Server
	faults  faults
	// registrar announces the driver to a kubelet; nil without one.
	registrar *grpc.Server

	mu        sync.Mutex
	busy      map[string]bool // names that a call is working on
	volumes   map[string]volume
	snapshots map[string]snapshot
	groups    map[string]group
}

// volume, snapshot and group are kept by their ids, which are the names that the caller chose.
type volume struct {
	subject

	size int64
}

type snapshot struct {
	subject

	volume  string
	group   string // empty for one that was taken alone
	size    int64
	created time.Time
	took    time.Duration // to copy
}

type group struct {
	subject

	snapshots []string
	created   time.Time
}

// New returns a driver; Serve makes it answer.
func New(o Options) (*Driver, error) {
	for _, folder := range []string{"volumes", "snapshots"} {
		if err := os.MkdirAll(filepath.Join(o.Dir, folder), 0o755); err != nil {
			return nil, fmt.Errorf("create directory of CSI driver: %w", err)
		}
	}
	d := &Driver{
		options:   o,
		busy:      map[string]bool{},
		volumes:   map[string]volume{},
		snapshots: map[string]snapshot{},
		groups:    map[string]group{},
	}
	d.server = grpc.NewServer(grpc.UnaryInterceptor(d.intercept))
	csi.RegisterIdentityServer(d.server, d)
	csi.RegisterControllerServer(d.server, d)
	csi.RegisterGroupControllerServer(d.server, d)
	if o.Mounter != nil {
		csi.RegisterNodeServer(d.server, nodeService{driver: d})
	}
	return d, nil
}

// Serve answers calls on a Unix socket at path until Stop is called.
func (d *Driver) Serve(path string) error { return serve(d.server, path) }

func serve(server *grpc.Server, path string) error {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return fmt.Errorf("listen for calls to CSI driver: %w", err)
	}
	go func() { _ = server.Serve(listener) }() // ends with Stop
	return nil
}

// Register offers the driver that serves on a socket to a kubelet, which looks for drivers in the
// directory plugins.
func (d *Driver) Register(plugins, socket string) error {
	if err := os.MkdirAll(plugins, 0o750); err != nil {
		return fmt.Errorf("register CSI driver: %w", err)
	}
	d.registrar = grpc.NewServer()
	registerv1.RegisterRegistrationServer(d.registrar, registration{socket: socket})
	return serve(d.registrar, filepath.Join(plugins, Name+"-reg.sock"))
}

// Stop ends all calls. Files stay.
func (d *Driver) Stop() {
	d.server.Stop()
	if d.registrar != nil {
		d.registrar.Stop()
	}
}

// Folder returns the folder with the files of a volume.
func (d *Driver) Folder(volumeID string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.volumes[volumeID]; !ok {
		return "", fmt.Errorf("there is no volume %s", volumeID)
	}
	return d.volumeFolder(volumeID), nil
}

func (d *Driver) volumeFolder(id string) string { return filepath.Join(d.options.Dir, "volumes", id) }

func (d *Driver) snapshotFolder(id string) string {
	return filepath.Join(d.options.Dir, "snapshots", id)
}

// begin claims the names for one call, as the CSI specification has it: the second caller is asked
// to try later. Each name becomes that of a folder.
func (d *Driver) begin(names ...string) (end func(), err error) {
	for _, name := range names {
		if name == "" || name == "." || name == ".." || filepath.Base(name) != name {
			return nil, status.Errorf(codes.InvalidArgument, "%q cannot be the name of a folder", name)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.IndexFunc(names, func(name string) bool { return d.busy[name] }); i >= 0 {
		return nil, status.Errorf(codes.Aborted, "another call is working on %s", names[i])
	}
	for _, name := range names {
		d.busy[name] = true
	}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, name := range names {
			delete(d.busy, name)
		}
	}, nil
}

// copyPaused copies the folders while nothing writes to any of them. If one cannot be copied, none is.
func (d *Driver) copyPaused(copies ...folderCopy) error {
	sources := make([]string, len(copies))
	for i, c := range copies {
		sources[i] = c.from
	}
	resume, err := d.options.Writers.Pause(sources...)
	if err != nil {
		return status.Errorf(codes.Internal, "pause writers: %v", err)
	}
	defer resume()
	for i, c := range copies {
		if err := c.do(); err != nil {
			for _, done := range copies[:i] {
				err = errors.Join(err, os.RemoveAll(done.to))
			}
			return status.Error(codes.Internal, err.Error())
		}
	}
	return nil
}
