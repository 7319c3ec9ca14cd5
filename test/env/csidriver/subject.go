package csidriver

import (
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// subject is what a call is for, in the words of Kubernetes.
type subject struct {
	namespace string
	names     []string
}

// subjectOf reads what provisioner and snapshotter add to a call's parameters.
func subjectOf(parameters map[string]string, kind string) subject {
	prefix := "csi.storage.k8s.io/" + kind + "/"
	s := subject{namespace: parameters[prefix+"namespace"]}
	if name := parameters[prefix+"name"]; name != "" {
		s.names = []string{name}
	}
	return s
}

// and returns s with the names of another subject of the same namespace.
func (s subject) and(other subject) subject {
	names := slices.Concat(s.names, other.names)
	slices.Sort(names)
	return subject{namespace: s.namespace, names: slices.Compact(names)}
}

// subject returns what a call is for, by what is known before it.
func (d *Driver) subject(request any) subject {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch r := request.(type) {
	case *csi.CreateVolumeRequest:
		return subjectOf(r.GetParameters(), "pvc")
	case *csi.DeleteVolumeRequest:
		return d.volumes[r.GetVolumeId()].subject
	case *csi.CreateSnapshotRequest:
		return subjectOf(r.GetParameters(), "volumesnapshot").and(d.volumes[r.GetSourceVolumeId()].subject)
	case *csi.DeleteSnapshotRequest:
		return d.snapshots[r.GetSnapshotId()].subject
	case *csi.ListSnapshotsRequest:
		return d.snapshots[r.GetSnapshotId()].subject
	case *csi.CreateVolumeGroupSnapshotRequest:
		s := subjectOf(r.GetParameters(), "volumegroupsnapshot")
		for _, id := range r.GetSourceVolumeIds() {
			s = s.and(d.volumes[id].subject)
		}
		return s
	case *csi.GetVolumeGroupSnapshotRequest:
		return d.groups[r.GetGroupSnapshotId()].subject
	case *csi.DeleteVolumeGroupSnapshotRequest:
		return d.groups[r.GetGroupSnapshotId()].subject
	}
	return subject{}
}
