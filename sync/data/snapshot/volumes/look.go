package volumes

import (
	"context"
	"fmt"
	"slices"
	"time"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
)

// Look returns how far the snapshots of the volumes are, in their order, as the watch knows it: it may not know
// yet of one that was just created.
func (w *Watch) Look(ctx context.Context, o Owner, volumes []v1alpha1.SnapshotVolume) ([]State, error) {
	if len(volumes) == 0 {
		return nil, nil
	}
	if err := w.Await(ctx, volumes); err != nil {
		return nil, err
	}
	found := members(w.follow(single).of(o.UID))
	groupStates := map[string]State{}
	for name, group := range groups(volumes) {
		state, err := w.lookGroup(ctx, o, name, group, found)
		if err != nil {
			return nil, err
		}
		groupStates[name] = state
	}
	states := make([]State, len(volumes))
	for i, volume := range volumes {
		if seen := found.of(volume); seen != nil {
			states[i] = seen.State
		}
		if volume.VolumeGroupSnapshot != "" {
			states[i] = withGroup(states[i], groupStates[volume.VolumeGroupSnapshot])
		}
	}
	return states, nil
}

// members are VolumeSnapshots of one ApplicationSnapshot.
type members sights

// of returns the VolumeSnapshot of a volume; nil if it is not there. If it belongs to a group, snapshot-controller
// has chosen its name.
func (m members) of(volume v1alpha1.SnapshotVolume) *sight {
	for _, s := range m {
		named := volume.VolumeSnapshot != "" && s.Name == volume.VolumeSnapshot
		if named || volume.VolumeSnapshot == "" && s.claim == volume.Claim && s.group == volume.VolumeGroupSnapshot {
			return s
		}
	}
	return nil
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
	content := ptr.Deref(s.Status.BoundVolumeSnapshotContentName, "")
	if state.Ready = ptr.Deref(s.Status.ReadyToUse, false) && content != ""; state.Ready {
		state.Content = content
	}
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
func (w *Watch) lookGroup(ctx context.Context, o Owner, name string, volumes []v1alpha1.SnapshotVolume, found members) (State, error) {
	group := w.follow(grouped).of(o.UID)[types.NamespacedName{Namespace: o.Namespace, Name: name}]
	if group == nil {
		return State{}, nil
	}
	missing := slices.ContainsFunc(volumes, func(v v1alpha1.SnapshotVolume) bool { return found.of(v) == nil })
	if group.CutAt == nil || !missing {
		return group.State, nil
	}
	return group.State, w.volumes.adopt(ctx, o, name, found)
}

func stateOfGroup(g *groupsnapshotv1.VolumeGroupSnapshot) State {
	state := State{Exists: g.DeletionTimestamp.IsZero(), UID: g.UID}
	if g.Status == nil {
		return state
	}
	state.CutAt = g.Status.CreationTime
	if g.Status.Error != nil {
		state.Error = ptr.Deref(g.Status.Error.Message, "no message")
	}
	return state
}

// adopt finds the VolumeSnapshots of a group.
func (v *Volumes) adopt(ctx context.Context, o Owner, group string, found members) error {
	all := &snapshotv1.VolumeSnapshotList{}
	if err := v.Client.List(ctx, all, client.InNamespace(o.Namespace)); err != nil {
		return fmt.Errorf("list VolumeSnapshots: %w", err)
	}
	for i := range all.Items {
		s := &all.Items[i]
		key := client.ObjectKeyFromObject(s)
		if groupOf(s) != group || found[key] != nil {
			continue
		}
		change := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, v1alpha1.SnapshotUIDLabel, o.UID)
		if err := v.Client.Patch(ctx, s, client.RawPatch(types.MergePatchType, change)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("label VolumeSnapshot %q: %w", s.Name, err)
		}
		found[key] = &sight{NamespacedName: key, State: stateOf(s), claim: ptr.Deref(s.Spec.Source.PersistentVolumeClaimName, ""), group: group}
	}
	return nil
}

// Cuts returns the UIDs of the VolumeSnapshotContents that volumes were cut as, by those of their VolumeSnapshots, as far as
// they are known. CutAgain tells others from them.
func (w *Watch) Cuts(states []State) map[types.UID]types.UID {
	known := map[types.UID]types.UID{}
	for _, state := range states {
		for _, content := range w.follow(taken).of(state.UID) {
			if content.CutAt != nil {
				known[state.UID] = content.UID
			}
		}
	}
	return known
}

// CutAgain returns the claims of VolumeSnapshots that are ready, of which the driver has taken another snapshot since they
// were cut: it does that if the VolumeSnapshotContent is lost, and the VolumeSnapshot does not show it, because it keeps
// the time of the first one. What is lost and not replaced yet counts, too. Of those whose first content is not known, as
// after a restart, the times are compared only.
func (w *Watch) CutAgain(ctx context.Context, volumes []v1alpha1.SnapshotVolume, states []State, first map[types.UID]types.UID) ([]string, error) {
	again := make([]bool, len(volumes))
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(parallel)
	for i, state := range states {
		if volumes[i].VolumeGroupSnapshot != "" {
			continue // what was taken of a group is never taken on its own
		}
		// One that is ready is what the VolumeSnapshot has become ready by. Else the watch is behind.
		if seen := w.follow(taken).of(state.UID)[types.NamespacedName{Name: state.Content}]; seen != nil && seen.Ready {
			again[i] = isAnother(state, first[state.UID], seen.State)
			continue
		}
		all.Go(func() error {
			content, err := w.volumes.content(ctx, state.Content)
			again[i] = isAnother(state, first[state.UID], content)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	var claims []string
	for i, volume := range volumes {
		if again[i] {
			claims = append(claims, volume.Claim)
		}
	}
	return claims, nil
}

// isAnother reports whether a content is not the one that a VolumeSnapshot was cut as.
func isAnother(of State, first types.UID, content State) bool {
	if content.CutAt == nil || first != "" && content.UID != first {
		return true
	}
	cut := content.CutAt.Rfc3339Copy() // as the VolumeSnapshot has it
	return !cut.Equal(of.CutAt)
}

// content returns how far a VolumeSnapshotContent is; nothing if it is gone.
func (v *Volumes) content(ctx context.Context, name string) (State, error) {
	content := &snapshotv1.VolumeSnapshotContent{}
	err := v.Client.Get(ctx, client.ObjectKey{Name: name}, content)
	switch {
	case gone(err):
		return State{}, nil
	case err != nil:
		return State{}, fmt.Errorf("get VolumeSnapshotContent %q: %w", name, err)
	}
	return stateOfContent(content), nil
}

func stateOfContent(c *snapshotv1.VolumeSnapshotContent) State {
	state := State{Exists: c.DeletionTimestamp.IsZero(), UID: c.UID}
	if c.Status == nil {
		return state
	}
	state.Ready = ptr.Deref(c.Status.ReadyToUse, false)
	if c.Status.CreationTime != nil {
		state.CutAt = ptr.To(metav1.NewTime(time.Unix(0, *c.Status.CreationTime)))
	}
	return state
}

// Gone reports whether a VolumeSnapshot does not exist, or is being deleted: a watch may be behind.
func (v *Volumes) Gone(ctx context.Context, namespace, name string) (bool, error) {
	found, err := v.get(ctx, v1alpha1.NamespacedReference{Namespace: namespace, Name: name})
	return found == nil || !found.DeletionTimestamp.IsZero(), err
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
