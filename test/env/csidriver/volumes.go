package csidriver

import (
	"context"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// defaultSize is the capacity of a volume that no capacity is requested for.
const defaultSize = 1 << 30

// CreateVolume creates a folder: empty, or a copy of a snapshot's or of another volume's.
func (d *Driver) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	end, err := d.begin(r.GetName())
	if err != nil {
		return nil, err
	}
	defer end()
	id := r.GetName()
	d.mu.Lock()
	v, exists := d.volumes[id]
	d.mu.Unlock()
	if !exists {
		v = volume{subject: subjectOf(r.GetParameters(), "pvc"), size: defaultSize}
		if wanted := r.GetCapacityRange().GetRequiredBytes(); wanted > 0 {
			v.size = wanted
		}
		if err := d.fill(id, r.GetVolumeContentSource()); err != nil {
			return nil, err
		}
		d.mu.Lock()
		d.volumes[id] = v
		d.mu.Unlock()
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{
		VolumeId:           id,
		CapacityBytes:      v.size,
		ContentSource:      r.GetVolumeContentSource(),
		AccessibleTopology: []*csi.Topology{{Segments: map[string]string{TopologyKey: d.options.Node}}},
	}}, nil
}

// fill creates a volume's folder with what the source holds.
func (d *Driver) fill(id string, source *csi.VolumeContentSource) error {
	folder := d.volumeFolder(id)
	d.mu.Lock()
	_, snapshotExists := d.snapshots[source.GetSnapshot().GetSnapshotId()]
	_, volumeExists := d.volumes[source.GetVolume().GetVolumeId()]
	d.mu.Unlock()
	switch {
	case source == nil:
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return status.Error(codes.Internal, err.Error())
		}
		return nil
	case snapshotExists: // snapshots are not written to
		if err := (folderCopy{d.snapshotFolder(source.GetSnapshot().GetSnapshotId()), folder}).do(); err != nil {
			return status.Error(codes.Internal, err.Error())
		}
		return nil
	case volumeExists:
		return d.copyPaused(folderCopy{d.volumeFolder(source.GetVolume().GetVolumeId()), folder})
	}
	return status.Errorf(codes.NotFound, "the source of volume %s does not exist: %v", id, source)
}

// DeleteVolume removes the folder. Its snapshots stay.
func (d *Driver) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	end, err := d.begin(r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer end()
	d.mu.Lock()
	delete(d.volumes, r.GetVolumeId())
	d.mu.Unlock()
	if err := os.RemoveAll(d.volumeFolder(r.GetVolumeId())); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// ValidateVolumeCapabilities confirms everything: nothing is mounted.
func (d *Driver) ValidateVolumeCapabilities(_ context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext:      r.GetVolumeContext(),
		VolumeCapabilities: r.GetVolumeCapabilities(),
	}}, nil
}
