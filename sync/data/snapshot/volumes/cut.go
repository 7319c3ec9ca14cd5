package volumes

import (
	"context"
	"fmt"
	"slices"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// parallel is how many requests are sent at once: an application is at rest meanwhile.
const parallel = 10

// State is how far the snapshot of one volume is.
type State struct {
	// Exists is false if the VolumeSnapshot, or its VolumeGroupSnapshot, is not there.
	Exists bool
	// VolumeSnapshot is the name; empty as long as that of a group is not known. UID is its UID.
	VolumeSnapshot string
	UID            types.UID
	// CutAt is when the driver took the snapshot; nil as long as it has not.
	CutAt *metav1.Time
	// Ready is true if volumes can be made of it.
	Ready bool
	// Content is the name of the VolumeSnapshotContent of one that is ready.
	Content string
	// Size of such a volume in bytes, if known.
	Size int64
	// Error is what the driver, or snapshot-controller, failed at last. They try again.
	Error string
}

// Cut creates the snapshots that are not there yet and not cut.
func (v *Volumes) Cut(ctx context.Context, o Owner, volumes []v1alpha1.SnapshotVolume) error {
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(parallel)
	for _, volume := range volumes {
		if !volume.Cut && volume.VolumeGroupSnapshot == "" {
			all.Go(func() error { return v.cutOne(ctx, o, volume) })
		}
	}
	for group, members := range groups(volumes) {
		if slices.ContainsFunc(members, func(m v1alpha1.SnapshotVolume) bool { return !m.Cut }) {
			all.Go(func() error { return v.cutGroup(ctx, o, group, members) })
		}
	}
	return all.Wait()
}

func (v *Volumes) cutOne(ctx context.Context, o Owner, volume v1alpha1.SnapshotVolume) error {
	err := v.Client.Create(ctx, &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: volume.VolumeSnapshot, Labels: o.labels()},
		Spec: snapshotv1.VolumeSnapshotSpec{
			Source:                  snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: ptr.To(volume.Claim)},
			VolumeSnapshotClassName: ptr.To(volume.ClassName),
		},
	})
	if client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create VolumeSnapshot of PersistentVolumeClaim %q: %w", volume.Claim, err)
	}
	return nil
}

// cutGroup labels the claims of a group and creates its VolumeGroupSnapshot, which selects them.
func (v *Volumes) cutGroup(ctx context.Context, o Owner, name string, members []v1alpha1.SnapshotVolume) error {
	for _, m := range members {
		if err := v.label(ctx, o.Namespace, m.Claim, ptr.To(name)); err != nil {
			return err
		}
	}
	err := v.Client.Create(ctx, &groupsnapshotv1.VolumeGroupSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: name, Labels: o.labels()},
		Spec: groupsnapshotv1.VolumeGroupSnapshotSpec{
			Source:                       groupsnapshotv1.VolumeGroupSnapshotSource{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.SnapshotGroupLabel: name}}},
			VolumeGroupSnapshotClassName: ptr.To(members[0].ClassName),
		},
	})
	if client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create VolumeGroupSnapshot %q: %w", name, err)
	}
	return nil
}

// groups returns the volumes that are snapshotted together, by the name of their VolumeGroupSnapshot.
func groups(volumes []v1alpha1.SnapshotVolume) map[string][]v1alpha1.SnapshotVolume {
	found := map[string][]v1alpha1.SnapshotVolume{}
	for _, volume := range volumes {
		if volume.VolumeGroupSnapshot != "" {
			found[volume.VolumeGroupSnapshot] = append(found[volume.VolumeGroupSnapshot], volume)
		}
	}
	return found
}
