package csidriver

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// CreateSnapshot copies a volume's folder. The snapshotter repeats the call until it is told that the
// snapshot is ready to use.
func (d *Driver) CreateSnapshot(_ context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	end, err := d.begin(r.GetName())
	if err != nil {
		return nil, err
	}
	defer end()
	id := r.GetName()
	d.mu.Lock()
	s, exists := d.snapshots[id]
	d.mu.Unlock()
	if exists && s.volume != r.GetSourceVolumeId() {
		return nil, status.Errorf(codes.AlreadyExists, "snapshot %s is one of volume %s", id, s.volume)
	}
	if !exists {
		taken, err := d.take(subjectOf(r.GetParameters(), "volumesnapshot"), map[string]string{id: r.GetSourceVolumeId()})
		if err != nil {
			return nil, err
		}
		s = taken[id]
	}
	return &csi.CreateSnapshotResponse{Snapshot: s.message(id)}, nil
}

// take copies the volumes of snapshots, which are given by the snapshots' ids, at one moment.
func (d *Driver) take(of subject, volumes map[string]string) (map[string]snapshot, error) {
	taken := make(map[string]snapshot, len(volumes))
	copies := make([]folderCopy, 0, len(volumes))
	d.mu.Lock()
	for id, volumeID := range volumes {
		v, ok := d.volumes[volumeID]
		if !ok {
			d.mu.Unlock()
			return nil, status.Errorf(codes.NotFound, "volume %s does not exist", volumeID)
		}
		copies = append(copies, folderCopy{d.volumeFolder(volumeID), d.snapshotFolder(id)})
		taken[id] = snapshot{subject: of.and(v.subject), volume: volumeID, size: v.size}
	}
	d.mu.Unlock()
	began := time.Now()
	if err := d.copyPaused(copies...); err != nil {
		return nil, err
	}
	created := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, s := range taken {
		s.created, s.took = created, created.Sub(began)
		taken[id] = s
		d.snapshots[id] = s
	}
	return taken, nil
}

// Took returns how long the copy for a snapshot took, while which the writers to its volume are paused; zero if there is
// no such snapshot.
func (d *Driver) Took(snapshotID string) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.snapshots[snapshotID].took
}

// DeleteSnapshot removes the copy.
func (d *Driver) DeleteSnapshot(_ context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	end, err := d.begin(r.GetSnapshotId())
	if err != nil {
		return nil, err
	}
	defer end()
	if err := d.remove(r.GetSnapshotId()); err != nil {
		return nil, err
	}
	return &csi.DeleteSnapshotResponse{}, nil
}

func (d *Driver) remove(snapshotIDs ...string) error {
	for _, id := range snapshotIDs {
		d.mu.Lock()
		delete(d.snapshots, id)
		d.mu.Unlock()
		if err := os.RemoveAll(d.snapshotFolder(id)); err != nil {
			return status.Error(codes.Internal, err.Error())
		}
	}
	return nil
}

// ListSnapshots returns one snapshot, those of one volume, or all, on one page.
func (d *Driver) ListSnapshots(_ context.Context, r *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	response := &csi.ListSnapshotsResponse{}
	for id, s := range d.snapshots {
		if r.GetSnapshotId() != "" && r.GetSnapshotId() != id || r.GetSourceVolumeId() != "" && r.GetSourceVolumeId() != s.volume {
			continue
		}
		response.Entries = append(response.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: s.message(id)})
	}
	return response, nil
}

// CreateVolumeGroupSnapshot copies the folders of several volumes at one moment.
func (d *Driver) CreateVolumeGroupSnapshot(_ context.Context, r *csi.CreateVolumeGroupSnapshotRequest) (*csi.CreateVolumeGroupSnapshotResponse, error) {
	end, err := d.begin(r.GetName())
	if err != nil {
		return nil, err
	}
	defer end()
	id := r.GetName()
	d.mu.Lock()
	g, exists := d.groups[id]
	d.mu.Unlock()
	if !exists {
		if g, err = d.takeGroup(r); err != nil {
			return nil, err
		}
	}
	return &csi.CreateVolumeGroupSnapshotResponse{GroupSnapshot: d.groupMessage(id, g)}, nil
}

func (d *Driver) takeGroup(r *csi.CreateVolumeGroupSnapshotRequest) (group, error) {
	g := group{subject: subjectOf(r.GetParameters(), "volumegroupsnapshot")}
	volumes := make(map[string]string, len(r.GetSourceVolumeIds()))
	for _, volumeID := range r.GetSourceVolumeIds() {
		id := r.GetName() + "-" + volumeID
		g.snapshots = append(g.snapshots, id)
		volumes[id] = volumeID
	}
	taken, err := d.take(g.subject, volumes)
	if err != nil {
		return group{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, s := range taken {
		s.group = r.GetName()
		d.snapshots[id] = s
		g.subject = g.and(s.subject)
		g.created = s.created
	}
	d.groups[r.GetName()] = g
	return g, nil
}

// GetVolumeGroupSnapshot returns a group snapshot.
func (d *Driver) GetVolumeGroupSnapshot(_ context.Context, r *csi.GetVolumeGroupSnapshotRequest) (*csi.GetVolumeGroupSnapshotResponse, error) {
	d.mu.Lock()
	g, ok := d.groups[r.GetGroupSnapshotId()]
	d.mu.Unlock()
	if !ok {
		return nil, status.Errorf(codes.NotFound, "group snapshot %s does not exist", r.GetGroupSnapshotId())
	}
	return &csi.GetVolumeGroupSnapshotResponse{GroupSnapshot: d.groupMessage(r.GetGroupSnapshotId(), g)}, nil
}

// DeleteVolumeGroupSnapshot removes a group snapshot with all its snapshots.
func (d *Driver) DeleteVolumeGroupSnapshot(_ context.Context, r *csi.DeleteVolumeGroupSnapshotRequest) (*csi.DeleteVolumeGroupSnapshotResponse, error) {
	end, err := d.begin(r.GetGroupSnapshotId())
	if err != nil {
		return nil, err
	}
	defer end()
	d.mu.Lock()
	snapshots := slices.Clone(d.groups[r.GetGroupSnapshotId()].snapshots)
	d.mu.Unlock()
	if err := d.remove(snapshots...); err != nil {
		return nil, err
	}
	d.mu.Lock()
	delete(d.groups, r.GetGroupSnapshotId())
	d.mu.Unlock()
	return &csi.DeleteVolumeGroupSnapshotResponse{}, nil
}

func (s snapshot) message(id string) *csi.Snapshot {
	return &csi.Snapshot{
		SnapshotId:      id,
		SourceVolumeId:  s.volume,
		SizeBytes:       s.size,
		CreationTime:    timestamppb.New(s.created),
		ReadyToUse:      true,
		GroupSnapshotId: s.group,
	}
}

// groupMessage leaves out snapshots that were deleted since.
func (d *Driver) groupMessage(id string, g group) *csi.VolumeGroupSnapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	message := &csi.VolumeGroupSnapshot{GroupSnapshotId: id, CreationTime: timestamppb.New(g.created), ReadyToUse: true}
	for _, snapshotID := range g.snapshots {
		if s, ok := d.snapshots[snapshotID]; ok {
			message.Snapshots = append(message.Snapshots, s.message(snapshotID))
		}
	}
	return message
}
