package volumes

import (
	"context"
	"crypto/sha256"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	groupsnapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumegroupsnapshot/v1"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/keyed"
)

// Watch watches the VolumeSnapshots and VolumeGroupSnapshots that have our label, from when they are
// first asked for: their kinds may come later than we do.
type Watch struct {
	ctx    context.Context
	client dynamic.Interface
	wake   func(types.UID)

	feeds keyed.Map[schema.GroupVersionResource, *watch.Feed[*sight]]
}

var (
	single  = snapshotv1.SchemeGroupVersion.WithResource("volumesnapshots")
	grouped = groupsnapshotv1.SchemeGroupVersion.WithResource("volumegroupsnapshots")
)

// NewWatch returns a watch until ctx ends. wake is called with the UID of the ApplicationSnapshot of what
// has changed.
func NewWatch(ctx context.Context, client dynamic.Interface, wake func(types.UID)) *Watch {
	return &Watch{ctx: ctx, client: client, wake: wake}
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
		if err := w.feed(kind).Await(ctx); err != nil {
			return fmt.Errorf("watch %s: %w", kind.Resource, watch.Stable(err))
		}
	}
	return nil
}

// feed returns the feed of a kind. One that has ended is replaced.
func (w *Watch) feed(kind schema.GroupVersionResource) (feed *watch.Feed[*sight]) {
	w.feeds.Change(kind, func(known *watch.Feed[*sight]) (*watch.Feed[*sight], bool) {
		if feed = known; feed == nil || feed.State().Ended {
			sink := &sink{wake: w.wake, seen: map[types.NamespacedName]*sight{}}
			feed = watch.New(watch.Objects(w.client.Resource(kind), v1alpha1.SnapshotUIDLabel), sink, toSight)
			feed.Start(w.ctx)
		}
		return feed, true
	})
	return feed
}

// sight is what is kept of a snapshot.
type sight struct {
	types.NamespacedName
	of types.UID
	// looks tells apart all that State says of it: other changes make no difference.
	looks [sha256.Size]byte
}

// GetObjectMeta implements watch.Seen.
func (s *sight) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}
}

func toSight(object metav1.Object) *sight {
	s := &sight{
		NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()},
		of:             types.UID(object.GetLabels()[v1alpha1.SnapshotUIDLabel]),
	}
	if whole, ok := object.(*unstructured.Unstructured); ok {
		s.looks = sha256.Sum256(fmt.Append(nil, whole.Object["status"], object.GetUID(), object.GetDeletionTimestamp() != nil))
	}
	return s
}

// sink wakes who a snapshot belongs to.
type sink struct {
	wake func(types.UID)
	seen map[types.NamespacedName]*sight
}

// Put implements watch.Sink.
func (s *sink) Put(seen *sight) {
	before := s.seen[seen.NamespacedName]
	s.seen[seen.NamespacedName] = seen
	if before == nil || *before != *seen {
		s.wake(seen.of)
	}
}

// Drop implements watch.Sink.
func (s *sink) Drop(seen *sight) {
	before := s.seen[seen.NamespacedName]
	delete(s.seen, seen.NamespacedName)
	if before != nil {
		s.wake(before.of)
	}
}

// Replace implements watch.Sink.
func (s *sink) Replace(all []*sight, _ string) {
	concerned := map[types.UID]bool{}
	for _, before := range s.seen {
		concerned[before.of] = true
	}
	clear(s.seen)
	for _, seen := range all {
		s.seen[seen.NamespacedName] = seen
		concerned[seen.of] = true
	}
	for of := range concerned {
		s.wake(of)
	}
}
