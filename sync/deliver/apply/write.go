package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/ptr"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
	"waybill.dev/waybill/sync/manifest"
)

// write applies an item, if the live object is ours to write.
func (r *run) write(ctx context.Context, it *item) {
	looks := it.looks()
	for try := 0; ; try++ {
		if it.blind = try == 0 && r.createsBlindly(it); it.blind {
			looks++
		}
		if !it.sight.known && !it.blind && !r.lookUp(ctx, it) {
			return
		}
		v := decide(r.evidence(it))
		if v != leave && r.heldBack(ctx, it) {
			r.leaveHeld(it)
			return
		}
		switch v {
		case leave:
			r.conflict(it)
			return
		case await:
			it.waiting = r.awaitGone(it)
			if it.action == Recreated && it.waiting {
				return
			}
			if it.waiting || try > maxLooks {
				it.refuse(ReasonTerminating, "an object of that name is being deleted; it will be recreated once that one is gone")
				return
			}
			it.sight.known = false
		default:
			err := r.patch(ctx, it, v == overwrite)
			if err == nil {
				return
			}
			switch {
			case try < looks && isOutdated(err): // it exists, or another was faster: look again
			case !r.mayRecreate(it, err):
				r.refused(ctx, it, err)
				return
			case !r.recreate(ctx, it, err):
				return
			}
			it.sight.known = false
		}
	}
}

// createsBlindly reports whether to apply an object that the watch does not show without looking for it first:
// it may exist without our label, but mostly does not, and then the API server refuses the apply, unless
// another server than Kubernetes' own serves the kind.
func (r *run) createsBlindly(it *item) bool {
	_, held := r.held[it.id.Key()]
	return it.sight.covered && !it.sight.known && !held && it.adopt == noAdoption && r.refusesOutdated(it.id.Group)
}

// refusesOutdated reports whether the kinds of a group are surely served by Kubernetes itself, which refuses
// the apply of an object with another resource version.
func (r *run) refusesOutdated(group string) bool {
	return watch.IsBuiltIn(group) || group == v1alpha1.Group || r.applier.definitions.Defines(group)
}

// absentVersion is a resource version that no object has: etcd's first revision is no write.
const absentVersion = "1"

// awaitGone registers the owner to be notified when the live object is gone, or belongs to another
// owner. It returns false if that is so already.
func (r *run) awaitGone(it *item) bool {
	waiting := it.kind.awaitGone(it.name(), it.sight.live, r.holder)
	if waiting && it.kind.denial(it.id.Namespace) != nil {
		r.missWatch()
	}
	return waiting
}

// evidence collects what a verdict on an item depends on.
func (r *run) evidence(it *item) evidence {
	e := evidence{
		live:      it.sight.live,
		mark:      r.holder.mark,
		delivered: r.delivered[it.id.Key()],
		adopt:     it.adopt,
	}
	if it.sight.own != nil {
		e.ownUID = it.sight.own.uid
	}
	return e
}

// patch applies an item and records what came of it.
func (r *run) patch(ctx context.Context, it *item, force bool) error {
	var uid types.UID
	if force {
		uid = it.sight.live.uid
	}
	payload, err := r.payload(ctx, it, uid)
	if it.blind {
		payload, err = payloadFor(it.body, map[string]any{"resourceVersion": absentVersion})
	}
	if err != nil {
		return err
	}
	if force {
		it.kind.begin(it.name(), r.holder)
	} else if rival := it.kind.claim(it.name(), r.holder, it.adopt == anything); rival != nil {
		rival.await(ctx)
		return rival
	}
	answer, err := r.send(ctx, it, payload, force)
	if err != nil {
		it.kind.abort(it.name(), r.holder)
		return err
	}
	applied := observe(answer, false).live
	applied.reported = reported(answer, applied.owner, r.applier.status)
	it.again = it.sight.live == nil && it.sight.appliedAs(it.desired)
	if it.action != Recreated {
		it.action = it.actionFor(applied)
	}
	it.applied = &record{holder: r.holder, desired: it.desired, ignored: it.ignored.Digest(), uid: applied.uid, fields: applied.fields, stamp: applied.stamp}
	if it.sight.live != nil {
		it.applied.heldBy = it.sight.live.heldBy // one that was set meanwhile is still to be decided on
	}
	it.kind.settle(it.name(), applied, it.applied)
	logr.FromContextOrDiscard(ctx).V(1).Info("Applied", "object", it.id.String(), "action", it.action)
	return nil
}

// send applies an item and returns the answer: the metadata of the object, or all of it if its
// status is wanted and no watch shows it.
func (r *run) send(ctx context.Context, it *item, payload []byte, force bool) (metav1.Object, error) {
	options := metav1.PatchOptions{
		FieldManager:    v1alpha1.FieldManager,
		FieldValidation: metav1.FieldValidationStrict,
		Force:           ptr.To(force),
	}
	if !it.sight.covered && r.applier.wantsStatus(r.request.Owner, it.kind) {
		whole := r.as(it.id).Dynamic().Resource(it.kind.gvr).Namespace(it.id.Namespace)
		return whole.Patch(ctx, it.id.Name, types.ApplyPatchType, payload, options)
	}
	return r.client(it.kind, it.id).Patch(ctx, it.id.Name, types.ApplyPatchType, payload, options)
}

// as returns the API server under the identity that writes an object.
func (r *run) as(id manifest.ID) Target {
	if r.request.As != nil {
		if target := r.request.As(id); target != nil {
			return target
		}
	}
	return r.applier.target
}

// client returns the metadata client that writes an object.
func (r *run) client(k *kind, id manifest.ID) metadata.ResourceInterface {
	return r.as(id).Metadata().Resource(k.gvr).Namespace(id.Namespace)
}

// actionFor returns what an apply has done, by comparing the object before and after.
func (it *item) actionFor(applied *live) Action {
	before := it.sight.live
	switch {
	case before == nil:
		return Created
	case before.version == applied.version, it.ignored != nil && it.gaveUp(applied):
		return ""
	case it.sight.appliedAs(it.desired):
		return Corrected
	default:
		return Configured
	}
}

// conflict records that an object belongs to another owner. If the object carries an owner mark
// too, our owner is notified when it goes.
func (r *run) conflict(it *item) {
	live := it.sight.live
	it.kind.awaitGone(it.name(), live, r.holder)
	it.refuse(ReasonConflict, it.foreign(r.request.Owner))
}

// foreign says whose the live object is, as an owner sees it that may not write it, and what to do about that.
func (it *item) foreign(owner Owner) string {
	return fmt.Sprintf("%s; %s", owner.describe(it.sight.live, it.sight.managers), it.adoptionHint())
}

// refused records why the API server did not apply an item.
func (r *run) refused(ctx context.Context, it *item, err error) {
	var rival *rivalError
	if errors.As(err, &rival) {
		it.refuse(ReasonConflict, fmt.Sprintf("%s; %s", r.request.Owner.describeOwner(rival.mark, nil), it.adoptionHint()))
		return
	}
	if failure := r.failureOf(it.kind, err); failure != nil {
		r.fail(failure)
		return
	}
	reason, message := classify(err)
	switch {
	case isNamespaceNotFound(err):
		r.awaitNamespace(ctx, it, phaseAbsent)
		it.refuse(ReasonNamespaceNotFound, message+"; it is applied as soon as there is one")
	case reason == ReasonTerminating:
		r.awaitNamespace(ctx, it, phaseTerminating)
		it.refuse(reason, message)
	case watch.IsKindNotFound(err):
		r.awaitServed(it.kind)
		r.awaitKind(it, watch.NoDefinitionError{Kind: it.kind.gvk}.Error())
	case reason == ReasonConflict:
		it.refuse(reason, fmt.Sprintf("%s; %s", message, it.adoptionHint()))
	case apierrors.IsConflict(err):
		it.refuse(ReasonFailed, "the object was modified concurrently; retrying")
	case isImmutableError(err) && it.mayAskForForce():
		it.refuse(reason, message+forceHint)
	default:
		it.refuse(reason, message)
	}
}

// awaitNamespace registers the owner to be notified when a namespace is no longer as it was found.
func (r *run) awaitNamespace(ctx context.Context, it *item, found phase) {
	it.waiting = true
	r.mu.Lock()
	r.spaces[it.id.Namespace] = true
	r.mu.Unlock()
	watched := r.applier.namespaces.await(r.holder, it.id.Namespace, found)
	if watch.IsUnwatchable(watched.Await(ctx)) {
		r.missWatch()
	}
}
