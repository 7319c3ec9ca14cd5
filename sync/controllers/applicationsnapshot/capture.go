package applicationsnapshot

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/data/snapshot/contents"
	"waybill.dev/waybill/sync/deliver/hold"
	"waybill.dev/waybill/sync/excerpt"
)

// capture stores the definitions of everything that belongs to the application.
func (s *scope) capture(ctx context.Context) (v1alpha1.SnapshotPhase, error) {
	// What waits here for another snapshot makes way for a rollback that waits for both.
	if known, err := s.rollbacks(ctx, s.obj.Status.Plan.ApplicationName, s.r.Client); err != nil {
		return "", err
	} else if known.first(hold.UnderWay) != "" {
		return s.yieldToRollback(), nil
	}
	free, err := s.enter(ctx)
	if err != nil {
		return "", err
	}
	if !free {
		s.leave()
		s.session.contents = nil // until it is our turn, there may be others
		s.message = "waiting for another ApplicationSnapshot of the application to release it"
		return "", nil
	}
	if !s.hasTurn() {
		s.session.contents = nil
		return "", nil
	}
	found, err := s.contents(ctx)
	if err != nil {
		return "", err
	}
	objects := definitions(found)
	if err := s.commit(ctx); err != nil {
		return "", err
	}
	if unchanged, err := s.checkRollbacks(ctx); err != nil {
		return "", err
	} else if !unchanged {
		return s.yieldToRollback(), nil
	}
	handle, err := s.r.Store.Save(ctx, s.obj.UID, s.obj.Status.Plan.Metadata, objects)
	if err != nil {
		return "", hopeless(err)
	}
	s.obj.Status.Metadata, s.obj.Status.Objects = &handle, int32(len(objects)) //nolint:gosec // a bound on their size is one on their number
	s.session.summary = s.summarize(objects)
	s.completed(v1alpha1.MetadataSnapshotCompletedCondition, "the definitions of %s are stored", excerpt.Count(len(objects), "object"))
	// Before the application is quiesced: nothing should have to wait then.
	if err := s.r.watch.Await(ctx, s.obj.Status.Volumes); err != nil {
		return "", err
	}
	s.session.contents, s.session.outline = nil, outlineOf(found)
	return v1alpha1.SnapshotQuiescing, nil
}

// checkRollbacks reports whether no rollback of the application is under way, and none has begun, ended or changed since
// what belongs to the application was looked up, as far as it was known then: the cache may have been behind. It is called
// when the status says that the snapshot begins: a rollback either sees that, or is seen here.
func (s *scope) checkRollbacks(ctx context.Context) (bool, error) {
	now, err := s.rollbacks(ctx, s.obj.Status.Plan.ApplicationName, s.r.Direct)
	if err != nil {
		return false, err
	}
	s.session.behind = now.versions() != s.session.rollbacks
	return !s.session.behind && now.first(hold.UnderWay) == "", nil
}

// yieldToRollback has the snapshot begin again, after a rollback that is under way: the application has other volumes
// then.
func (s *scope) yieldToRollback() v1alpha1.SnapshotPhase {
	s.leave()
	s.session.contents = nil
	conditions.Delete(s.obj, v1alpha1.PreHookExecutionCompletedCondition)
	return v1alpha1.SnapshotPending
}

// hasTurn reports whether it is the turn of the snapshot. What belongs to its application is not looked up before,
// because it may change meanwhile.
func (s *scope) hasTurn() bool {
	if s.r.gate.begin(s.obj.UID, client.ObjectKeyFromObject(s.obj)) {
		return true
	}
	s.message = "waiting for ApplicationSnapshots of other applications that are being taken"
	return false
}

// enter reports whether no other snapshot quiesces the application. What others were doing when a process
// ended is in their status.
func (s *scope) enter(ctx context.Context) (bool, error) {
	name := s.obj.Status.Plan.ApplicationName
	application := types.NamespacedName{Namespace: s.obj.Namespace, Name: name}
	if !s.r.gate.enter(application, s.obj.UID, client.ObjectKeyFromObject(s.obj)) {
		return false, nil
	}
	others := &v1alpha1.ApplicationSnapshotList{}
	if err := s.r.Client.List(ctx, others, client.InNamespace(s.obj.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list ApplicationSnapshots: %w", err)
	}
	for i := range others.Items {
		other := &others.Items[i]
		if other.UID == s.obj.UID || other.Status.Plan == nil || other.Status.Plan.ApplicationName != name || !quiesced(other) {
			continue
		}
		if err := s.yield(ctx, application, other); err != nil {
			return false, err
		}
		if !s.r.gate.enter(application, s.obj.UID, client.ObjectKeyFromObject(s.obj)) {
			return false, nil
		}
	}
	return true, nil
}

// yield has another snapshot hold the application, if that is still quiesced. The cache may be behind it: it is made
// the holder before it is read, because it leaves after it has written that it is over. So it has not left yet if it
// is not over.
func (s *scope) yield(ctx context.Context, application types.NamespacedName, other *v1alpha1.ApplicationSnapshot) error {
	s.leave()
	s.r.gate.enter(application, other.UID, client.ObjectKeyFromObject(other))
	now := &v1alpha1.ApplicationSnapshot{}
	err := s.r.Direct.Get(ctx, client.ObjectKeyFromObject(other), now)
	if err == nil && now.UID == other.UID && quiesced(now) {
		return nil
	}
	s.r.leave(other.UID)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get ApplicationSnapshot %q: %w", other.Name, err)
	}
	return nil
}

// leave lets other snapshots quiesce the application. A snapshot whose application is quiesced writes first that it is
// not any more, because they look.
func (s *scope) leave() { s.r.leave(s.obj.UID) }

func (r *Reconciler) leave(uid types.UID) {
	for _, name := range r.gate.release(uid) {
		r.waker.Wake(ctrl.Request{NamespacedName: name})
	}
}

// quiesced reports whether the application of a snapshot may be at rest.
func quiesced(s *v1alpha1.ApplicationSnapshot) bool {
	switch s.Status.Phase {
	case v1alpha1.SnapshotQuiescing, v1alpha1.SnapshotCutting, v1alpha1.SnapshotReleasing:
		return true
	}
	return false
}

// definitions returns the objects whose definitions are stored.
func definitions(found *contents.Contents) []*unstructured.Unstructured {
	all := []*unstructured.Unstructured{found.Application}
	for _, o := range found.Objects {
		all = append(all, o.Unstructured)
	}
	for _, c := range found.Claims {
		all = append(all, c.Unstructured)
	}
	return all
}
