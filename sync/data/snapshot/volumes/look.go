package volumes

import (
	"context"
	"fmt"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// Look returns how far the snapshots of the volumes are, in their order.
func (v *Volumes) Look(ctx context.Context, o Owner, volumes []v1alpha1.SnapshotVolume) ([]State, error) {
	if len(volumes) == 0 {
		return nil, nil
	}
	found := &snapshotv1.VolumeSnapshotList{}
	if err := v.Client.List(ctx, found, client.InNamespace(o.Namespace), client.MatchingLabels(o.labels())); err != nil {
		return nil, unserved(err, "list VolumeSnapshots")
	}
	byName := map[string]*snapshotv1.VolumeSnapshot{}
	for i := range found.Items {
		byName[found.Items[i].Name] = &found.Items[i]
	}
	groupStates := map[string]State{}
	for group, members := range groups(volumes) {
		state, err := v.lookGroup(ctx, o, group, members, byName)
		if err != nil {
			return nil, err
		}
		groupStates[group] = state
	}
	states := make([]State, len(volumes))
	for i, volume := range volumes {
		states[i] = stateOf(byName[memberName(volume, byName)])
		if volume.VolumeGroupSnapshot != "" {
			states[i] = withGroup(states[i], groupStates[volume.VolumeGroupSnapshot])
		}
	}
	return states, nil
}

// memberName returns the name of the VolumeSnapshot of a volume, which snapshot-controller chooses if it
// belongs to a group.
func memberName(volume v1alpha1.SnapshotVolume, byName map[string]*snapshotv1.VolumeSnapshot) string {
	if volume.VolumeSnapshot != "" {
		return volume.VolumeSnapshot
	}
	for name, s := range byName {
		if ptr.Deref(s.Spec.Source.PersistentVolumeClaimName, "") == volume.Claim && groupOf(s) == volume.VolumeGroupSnapshot {
			return name
		}
	}
	return ""
}

func stateOf(s *snapshotv1.VolumeSnapshot) State {
	if s == nil {
		return State{}
	}
	state := State{Exists: s.DeletionTimestamp.IsZero(), VolumeSnapshot: s.Name, UID: s.UID}
	if s.Status == nil {
		return state
	}
	state.CutAt = s.Status.CreationTime
	state.Ready = ptr.Deref(s.Status.ReadyToUse, false) && ptr.Deref(s.Status.BoundVolumeSnapshotContentName, "") != ""
	if s.Status.RestoreSize != nil {
		state.Size = s.Status.RestoreSize.Value()
	}
	if s.Status.Error != nil {
		state.Error = ptr.Deref(s.Status.Error.Message, "no message")
	}
	return state
}

// withGroup adds to the state of a VolumeSnapshot, which may not exist yet, what is known of its group.
func withGroup(s, group State) State {
	if s.VolumeSnapshot == "" {
		s.Exists = group.Exists
	}
	if s.CutAt == nil {
		s.CutAt = group.CutAt
	}
	if s.Error == "" {
		s.Error = group.Error
	}
	return s
}

// lookGroup returns how far a VolumeGroupSnapshot is, and adds those of its VolumeSnapshots that have not
// been known so far. They get the label of ours, by which they are watched.
func (v *Volumes) lookGroup(ctx context.Context, o Owner, name string, members []v1alpha1.SnapshotVolume, byName map[string]*snapshotv1.VolumeSnapshot) (State, error) {
	group := &groupsnapshotv1.VolumeGroupSnapshot{}
	err := v.Client.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: name}, group)
	if apierrors.IsNotFound(err) {
		return State{}, nil
	}
	if err != nil {
		return State{}, unserved(err, fmt.Sprintf("get VolumeGroupSnapshot %q", name))
	}
	state := State{Exists: group.DeletionTimestamp.IsZero()}
	if group.Status == nil {
		return state, nil
	}
	state.CutAt = group.Status.CreationTime
	if group.Status.Error != nil {
		state.Error = ptr.Deref(group.Status.Error.Message, "no message")
	}
	missing := false
	for _, m := range members {
		missing = missing || byName[memberName(m, byName)] == nil
	}
	if state.CutAt == nil || !missing {
		return state, nil
	}
	return state, v.adopt(ctx, o, name, byName)
}

// adopt finds the VolumeSnapshots of a group.
func (v *Volumes) adopt(ctx context.Context, o Owner, group string, byName map[string]*snapshotv1.VolumeSnapshot) error {
	all := &snapshotv1.VolumeSnapshotList{}
	if err := v.Client.List(ctx, all, client.InNamespace(o.Namespace)); err != nil {
		return fmt.Errorf("list VolumeSnapshots: %w", err)
	}
	for i := range all.Items {
		s := &all.Items[i]
		if groupOf(s) != group || byName[s.Name] != nil {
			continue
		}
		change := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, v1alpha1.SnapshotUIDLabel, o.UID)
		if err := v.Client.Patch(ctx, s, client.RawPatch(types.MergePatchType, change)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("label VolumeSnapshot %q: %w", s.Name, err)
		}
		byName[s.Name] = s
	}
	return nil
}

// groupOf returns the name of the VolumeGroupSnapshot that a VolumeSnapshot belongs to; empty if it
// belongs to none.
func groupOf(s *snapshotv1.VolumeSnapshot) string {
	if s.Status != nil && s.Status.VolumeGroupSnapshotName != nil {
		return *s.Status.VolumeGroupSnapshotName
	}
	for _, owner := range s.OwnerReferences {
		if owner.Kind == "VolumeGroupSnapshot" {
			return owner.Name
		}
	}
	return ""
}
