package volumes

import (
	"context"
	"fmt"
	"maps"
	"sync"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/keyed"
)

// Watch watches the VolumeSnapshots and VolumeGroupSnapshots that have our label, from when they are
// first asked for: their kinds may come later than we do. It knows how far each is, so that nothing is read
// while an application is at rest.
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
	kinds := []schema.GroupVersionResource{single}
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
			reduce := seeSnapshot
			if kind == grouped {
				reduce = seeGroup
			}
			sink := &sink{wake: w.wake, seen: map[types.UID]sights{}}
			found = &follower{watch.New(watch.Objects(w.client.Resource(kind), v1alpha1.SnapshotUIDLabel), sink, reduce), sink}
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

	// of is the ApplicationSnapshot that it is taken for.
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

// read converts an object that was watched. One of an API server is of its kind.
func read(object metav1.Object, into any) bool {
	whole, ok := object.(*unstructured.Unstructured)
	return ok && runtime.DefaultUnstructuredConverter.FromUnstructured(whole.Object, into) == nil
}

// sink keeps what was seen, and enqueues the snapshot that it belongs to.
type sink struct {
	wake func(types.UID)

	mu   sync.Mutex
	seen map[types.UID]sights
}

// of returns what was seen of the snapshots that are taken for an ApplicationSnapshot.
func (s *sink) of(uid types.UID) sights {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := sights{}
	maps.Copy(found, s.seen[uid])
	return found
}

// Put implements watch.Sink. That one is there, and that it waits for its driver, is known to who has created it.
func (s *sink) Put(seen *sight) {
	s.mu.Lock()
	before := s.seen[seen.of][seen.NamespacedName]
	s.keep(seen)
	s.mu.Unlock()
	was := State{Exists: true, VolumeSnapshot: seen.VolumeSnapshot, UID: seen.UID}
	if before != nil {
		was = before.State
	}
	if !equality.Semantic.DeepEqual(was, seen.State) {
		s.wake(seen.of)
	}
}

// Drop implements watch.Sink.
func (s *sink) Drop(seen *sight) {
	s.mu.Lock()
	before := s.seen[seen.of][seen.NamespacedName]
	delete(s.seen[seen.of], seen.NamespacedName)
	if len(s.seen[seen.of]) == 0 {
		delete(s.seen, seen.of)
	}
	s.mu.Unlock()
	if before != nil {
		s.wake(before.of)
	}
}

func (s *sink) keep(seen *sight) {
	if s.seen[seen.of] == nil {
		s.seen[seen.of] = sights{}
	}
	s.seen[seen.of][seen.NamespacedName] = seen
}

// Replace implements watch.Sink.
func (s *sink) Replace(all []*sight, _ string) {
	concerned := map[types.UID]bool{}
	s.mu.Lock()
	for of := range s.seen {
		concerned[of] = true
	}
	clear(s.seen)
	for _, seen := range all {
		s.keep(seen)
		concerned[seen.of] = true
	}
	s.mu.Unlock()
	for of := range concerned {
		s.wake(of)
	}
}
