package apply

import (
	"context"
	"slices"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/deliver/inventory"
	"waybill.dev/waybill/sync/manifest"
)

// removal is one object on its way out of the cluster.
type removal struct {
	id   manifest.ID
	kind *kind
	rank rank
	// sight is what is known of the live object. Set by remove.
	sight sight
	// done: nothing of ours is left.
	done bool
	// hold is that of an object that stays for now; nil if there is none.
	hold *v1alpha1.Hold
	outcome
}

// rank is the order in which objects are deleted.
type rank int

const (
	// custom objects go first if their definitions go too: as long as their controller is running,
	// it can take down what they stand for. Nothing else goes before they are gone, even if the
	// deletion of one of them is refused: it would be deleted with its definition all the same,
	// against that refusal.
	custom rank = iota
	// namespaced objects.
	namespaced
	// clusterScoped objects.
	clusterScoped
	// foundation is what others depend on: Namespaces and CustomResourceDefinitions.
	foundation
	ranks
)

func (rm *removal) name() types.NamespacedName {
	return types.NamespacedName{Namespace: rm.id.Namespace, Name: rm.id.Name}
}

func (rm *removal) refuse(reason, message string) {
	rm.problem = &manifest.Problem{ID: rm.id, Removal: true, Reason: reason, Message: message}
}

// prune deletes what was delivered before and is no longer wanted.
func (r *run) prune(ctx context.Context) {
	stale := inventory.Diff(r.request.Inventory, r.wanted())
	if len(stale) == 0 {
		return
	}
	if !r.request.Prune || r.failed() {
		r.left = stale
		return
	}
	r.resolveRemovals(ctx, r.holdUnread(stale))
	r.holdUsed(ctx)
	r.holdFoundations()
	r.coverRemovals(ctx)
	for _, rm := range r.removals {
		if rm.kind != nil {
			r.forget(recordKey{rm.kind, rm.name()}) // its deletion is no longer drift
		}
	}
	for step := custom; step < ranks && !r.failed(); step++ {
		if step == foundation {
			r.keepNamespaces()
		}
		each(ctx, r, r.pending(step), r.remove)
		if step > custom {
			continue
		}
		r.keepDefinitions()
		r.keepNamespaces() // a later run does not know any more what was released in this one
		if !r.over(custom) {
			r.waitForCustom()
			break
		}
	}
	r.holdOn()
}

// keepDefinitions releases the definitions of custom objects that stay: deleting them would delete
// the objects too.
func (r *run) keepDefinitions() {
	kept := make(map[string]bool)
	for _, rm := range r.removals {
		if rm.rank == custom && rm.action == Released {
			kept[rm.kind.gvr.Resource+"."+rm.id.Group] = true
		}
	}
	for _, rm := range r.removals {
		if isDefinition(rm.id) && kept[rm.id.Name] {
			rm.done, rm.action, rm.problem = true, Released, nil
		}
	}
}

// keepNamespaces releases the Namespaces of objects that stay, and leaves those for now in which a
// deletion was refused: deleting them would delete the objects too.
func (r *run) keepNamespaces() {
	released, refused := make(map[string]bool), make(map[string]bool)
	for _, rm := range r.removals {
		released[rm.id.Namespace] = released[rm.id.Namespace] || rm.action == Released
		refused[rm.id.Namespace] = refused[rm.id.Namespace] || rm.problem != nil
	}
	for _, rm := range r.removals {
		switch {
		case rm.id.GroupVersionKind().GroupKind() != namespaceKind || rm.problem != nil:
		case released[rm.id.Name]:
			rm.done, rm.action = true, Released
		case refused[rm.id.Name]:
			rm.waiting = true
		}
	}
}

// over reports whether all removals of a rank are done.
func (r *run) over(step rank) bool {
	return !slices.ContainsFunc(r.removals, func(rm *removal) bool { return rm.rank == step && !rm.done })
}

// pending returns the removals of a rank that are still to be tried.
func (r *run) pending(step rank) []*removal {
	var pending []*removal
	for _, rm := range r.removals {
		if rm.rank == step && !rm.done && !rm.waiting && rm.problem == nil {
			pending = append(pending, rm)
		}
	}
	return pending
}

// waitForCustom records that everything else waits for custom objects to go.
func (r *run) waitForCustom() {
	for _, rm := range r.removals {
		rm.waiting = rm.waiting || !rm.done && rm.problem == nil
	}
}

// holdOn keeps the watches of objects that are not gone yet.
func (r *run) holdOn() {
	for _, rm := range r.removals {
		if rm.kind != nil && !rm.done {
			r.needed.add(rm.kind, rm.id.Namespace)
		}
	}
}

// remove deletes an object if it still is what we delivered, and finds out whether
// it is gone.
func (r *run) remove(ctx context.Context, rm *removal) {
	rm.sight = rm.kind.see(rm.name(), r.holder)
	for try := 0; ; try++ {
		if !rm.sight.known && !r.lookUpRemoval(ctx, rm) {
			return
		}
		live := rm.sight.live
		switch fateOf(live, r.holder.mark, r.unkept[rm.id.Key()]) {
		case gone:
			rm.done = true
			return
		case released:
			rm.done, rm.action = true, Released
			return
		case terminating:
			r.awaitRemoval(rm)
			return
		case deleted:
			if r.awaitsRollback(ctx, rm) {
				return
			}
		}
		err := r.delete(ctx, rm)
		if err == nil {
			return
		}
		if try == maxLooks || !mayHaveChanged(err) {
			r.notRemoved(ctx, rm, err)
			return
		}
		// It may be another object by now, or one of another owner.
		if !r.lookUpRemoval(ctx, rm) {
			return
		}
		if now := rm.sight.live; now != nil && now.uid == live.uid && now.version == live.version {
			rm.refuse(classify(err)) // it has not changed: something else refuses the deletion
			return
		}
	}
}

// mayHaveChanged reports whether an object was not deleted because it has changed since it was
// observed. The same answer of another component refuses the deletion: that of a webhook, which the
// API server names, or of the storage of a kind.
func mayHaveChanged(err error) bool {
	reason, _ := classify(err)
	return apierrors.IsConflict(err) && reason != ReasonRefused
}

// lookUpRemoval reads an object that no watch shows: it may have lost its label. It returns false
// if that fails.
func (r *run) lookUpRemoval(ctx context.Context, rm *removal) bool {
	err := r.read(ctx, rm.kind, rm.id, &rm.sight)
	if err != nil {
		r.notRemoved(ctx, rm, err)
	}
	return err == nil
}

// maxLooks is how often an object that has changed since a watch saw it is read again.
const maxLooks = 3

// delete deletes an object, and in the background what it owns. It deletes only the very object
// that was observed, as it was then: a watch may be behind, and the object may have been handed
// over to another owner meanwhile.
func (r *run) delete(ctx context.Context, rm *removal) error {
	err := r.client(rm.kind, rm.id).Delete(ctx, rm.id.Name, metav1.DeleteOptions{
		Preconditions:     &metav1.Preconditions{UID: ptr.To(rm.sight.live.uid), ResourceVersion: ptr.To(rm.sight.live.version)},
		PropagationPolicy: ptr.To(metav1.DeletePropagationBackground),
	})
	if apierrors.IsNotFound(err) && !watch.IsKindNotFound(err) {
		rm.done = true
		return nil
	}
	if err != nil {
		return err
	}
	rm.action = Deleted
	logr.FromContextOrDiscard(ctx).V(1).Info("Deleted", "object", rm.id.String())
	uid := rm.sight.live.uid
	if now := rm.kind.see(rm.name(), r.holder); now.covered && (now.live == nil || now.live.uid != uid) {
		rm.done = true // the watch was faster than the answer
		return nil
	}
	if r.lookUpRemoval(ctx, rm) {
		if rm.done = rm.sight.live == nil || rm.sight.live.uid != uid; !rm.done {
			r.awaitRemoval(rm)
		}
	}
	return nil
}

// awaitRemoval registers the owner to be notified when a terminating object is gone.
func (r *run) awaitRemoval(rm *removal) {
	rm.waiting = rm.kind.awaitGone(rm.name(), rm.sight.live, r.holder)
	rm.done = !rm.waiting
	if rm.waiting && rm.kind.denial(rm.id.Namespace) != nil {
		r.missWatch()
	}
}

// notRemoved records why an object was not deleted.
func (r *run) notRemoved(ctx context.Context, rm *removal, err error) {
	if watch.IsKindNotFound(err) { // in this version
		r.removalsUncovered(ctx, rm.kind, []*removal{rm}, err)
		return
	}
	if failure := r.failureOf(rm.kind, err); failure != nil {
		r.fail(failure)
		return
	}
	reason, message := classify(err)
	if mayHaveChanged(err) {
		message = "the object was modified concurrently; its deletion is retried" // the API server quotes versions
	}
	rm.refuse(reason, message)
}
