package volumes

import (
	"context"
	"fmt"
	"maps"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/keyed"
)

// Watch watches the VolumeSnapshots and VolumeGroupSnapshots that have our label, and VolumeSnapshotContents, which cannot
// have it, from when they are first asked for: their kinds may come later than we do. It knows how far each is, so that
// nothing is read while an application is at rest.
type Watch struct {
	ctx     context.Context
	client  dynamic.Interface
	volumes *Volumes
	wake    func(types.UID)

	feeds keyed.Map[schema.GroupVersionResource, *follower]
}

// follower is the watch of one kind.
type follower struct {
	*watch.Feed[*sight]
	*sink
}

var (
	single  = snapshotv1.SchemeGroupVersion.WithResource("volumesnapshots")
	grouped = groupsnapshotv1.SchemeGroupVersion.WithResource("volumegroupsnapshots")
	taken   = snapshotv1.SchemeGroupVersion.WithResource("volumesnapshotcontents")
)

// NewWatch returns a watch until ctx ends. wake is called with the UID of the ApplicationSnapshot of what
// has changed: a snapshot was cut, is ready, in error, or gone.
func NewWatch(ctx context.Context, client dynamic.Interface, volumes *Volumes, wake func(types.UID)) *Watch {
	return &Watch{ctx: ctx, client: client, volumes: volumes, wake: wake}
}

// Await returns once every change of the snapshots of these volumes is noticed.
func (w *Watch) Await(ctx context.Context, volumes []v1alpha1.SnapshotVolume) error {
	if len(volumes) == 0 {
		return nil
	}
	kinds := []schema.GroupVersionResource{single, taken}
	if len(groups(volumes)) > 0 {
		kinds = append(kinds, grouped)
	}
	for _, kind := range kinds {
		if err := w.follow(kind).Await(ctx); err != nil {
			return fmt.Errorf("watch %s: %w", kind.Resource, watch.Stable(err))
		}
	}
	return nil
}

// follow returns the watch of a kind. One that has ended is replaced.
func (w *Watch) follow(kind schema.GroupVersionResource) (found *follower) {
	w.feeds.Change(kind, func(known *follower) (*follower, bool) {
		if found = known; found == nil || found.State().Ended {
			reduce, labels, wake := seeSnapshot, v1alpha1.SnapshotUIDLabel, w.wake
			switch kind {
			case grouped:
				reduce = seeGroup
			case taken:
				reduce, labels, wake = seeContent, "", func(types.UID) {}
			}
			sink := &sink{wake: wake}
			found = &follower{watch.New(watch.Objects(w.client.Resource(kind), labels), sink, reduce), sink}
			found.Start(w.ctx)
		}
		return found, true
	})
	return found
}

// sight is what is kept of a snapshot. It is not changed once it is seen.
type sight struct {
	types.NamespacedName
	State

	// of is the ApplicationSnapshot that it is taken for; of a VolumeSnapshotContent, the VolumeSnapshot.
	of types.UID
	// claim that a VolumeSnapshot is of, and the VolumeGroupSnapshot that it belongs to; empty if to none.
	claim, group string
}

// sights are those of one ApplicationSnapshot, by name.
type sights map[types.NamespacedName]*sight

// GetObjectMeta implements watch.Seen.
func (s *sight) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}
}

func see(object metav1.Object) *sight {
	return &sight{
		NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()},
		of:             types.UID(object.GetLabels()[v1alpha1.SnapshotUIDLabel]),
	}
}

// seeSnapshot reduces a VolumeSnapshot.
func seeSnapshot(object metav1.Object) *sight {
	s, typed := see(object), &snapshotv1.VolumeSnapshot{}
	if read(object, typed) {
		s.State, s.claim, s.group = stateOf(typed), ptr.Deref(typed.Spec.Source.PersistentVolumeClaimName, ""), groupOf(typed)
	}
	return s
}

// seeGroup reduces a VolumeGroupSnapshot.
func seeGroup(object metav1.Object) *sight {
	s, typed := see(object), &groupsnapshotv1.VolumeGroupSnapshot{}
	if read(object, typed) {
		s.State = stateOfGroup(typed)
	}
	return s
}

// seeContent reduces a VolumeSnapshotContent.
func seeContent(object metav1.Object) *sight {
	s, typed := see(object), &snapshotv1.VolumeSnapshotContent{}
	if read(object, typed) {
		s.State, s.of = stateOfContent(typed), typed.Spec.VolumeSnapshotRef.UID
	}
	return s
}

// read converts an object that was watched. One of an API server is of its kind.
func read(object metav1.Object, into any) bool {
	whole, ok := object.(*unstructured.Unstructured)
	return ok && runtime.DefaultUnstructuredConverter.FromUnstructured(whole.Object, into) == nil
}

// sink keeps what was seen, and enqueues the snapshot that it belongs to.
type sink struct {
	wake func(types.UID)
	seen keyed.Map[types.UID, sights]
}

// of returns what was seen of the snapshots that are taken for an ApplicationSnapshot.
func (s *sink) of(uid types.UID) (found sights) {
	s.seen.Change(uid, func(all sights) (sights, bool) {
		found = maps.Clone(all)
		return all, len(all) > 0
	})
	return found
}

// Put implements watch.Sink. That one is there, and that it waits for its driver, is known to who has created it.
func (s *sink) Put(seen *sight) {
	was := State{Exists: true, VolumeSnapshot: seen.VolumeSnapshot, UID: seen.UID}
	s.seen.Change(seen.of, func(all sights) (sights, bool) {
		if before := all[seen.NamespacedName]; before != nil {
			was = before.State
		}
		return all.with(seen), true
	})
	if !equality.Semantic.DeepEqual(was, seen.State) {
		s.wake(seen.of)
	}
}

// Drop implements watch.Sink.
func (s *sink) Drop(seen *sight) {
	known := false
	s.seen.Change(seen.of, func(all sights) (sights, bool) {
		_, known = all[seen.NamespacedName]
		delete(all, seen.NamespacedName)
		return all, len(all) > 0
	})
	if known {
		s.wake(seen.of)
	}
}

// Replace implements watch.Sink.
func (s *sink) Replace(all []*sight, _ string) {
	now := map[types.UID]sights{}
	for _, seen := range all {
		now[seen.of] = now[seen.of].with(seen)
	}
	concerned := sets.KeySet(now)
	for of := range concerned.Union(sets.KeySet(s.seen.Replace(now))) {
		s.wake(of)
	}
}

// with adds one, or replaces the one of its name.
func (s sights) with(seen *sight) sights {
	if s == nil {
		s = sights{}
	}
	s[seen.NamespacedName] = seen
	return s
}
