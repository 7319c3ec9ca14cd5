package apply

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/cluster/watch"
)

// retryDenied is the time after which a watch that was forbidden is tried again, by the next Apply
// that would use it: the right may have been granted meanwhile.
const retryDenied = 5 * time.Minute

// retryLost is the time after which a watch that was forbidden is tried again without a request: an
// API server that restarts answers so until it knows all rights, and no event says that a right was
// granted. It doubles up to retryDenied.
const retryLost = 30 * time.Second

// cover makes sure that the objects of a kind are watched in some namespaces: everywhere at once
// or, for an identity that may not do that, one by one. If it may not do that either, that is no
// error; covered and denial report it. An error means that the state of the objects is not known.
func (k *kind) cover(ctx context.Context, namespaces []string) error {
	err := k.await(ctx, everywhere)
	if err == nil || !watch.IsUnwatchable(err) {
		return err
	}
	if !k.namespaced {
		return nil
	}
	for _, namespace := range namespaces {
		k.feed(namespace) // start them all before waiting for the first
	}
	for _, namespace := range namespaces {
		if err := k.await(ctx, namespace); err != nil && !watch.IsUnwatchable(err) {
			return err
		}
	}
	return nil
}

// await waits until a scope is watched, or an attempt to watch it fails.
func (k *kind) await(ctx context.Context, scope string) error {
	for {
		err := k.feed(scope).Await(ctx)
		if !errors.Is(err, watch.ErrStopped) {
			return err
		}
		// It was replaced by one that watches more. Wait for that one.
	}
}

// feed returns the watch of a scope, or of all if that shows it, and starts it if there is none.
func (k *kind) feed(scope string) *feed {
	k.mu.Lock()
	defer k.mu.Unlock()
	if all := k.feeds[everywhere]; all != nil && all.State().Synced {
		return all
	}
	f := k.feeds[scope]
	if f == nil || f.State().Ended && !f.State().Refused(retryDenied) {
		f = k.start(scope)
	}
	return f
}

// start starts a watch, in place of an existing one if there is one. The caller holds the lock.
func (k *kind) start(scope string) *feed {
	relied, pause := false, retryLost // relied: others have relied on the one before
	if old := k.feeds[scope]; old != nil {
		relied = !old.State().Ended
		if old.version == "" { // it never was synced
			pause = min(2*old.pause, retryDenied)
		}
		old.End()
	}
	target, labels := k.applier.target, v1alpha1.OwnerHashLabel
	source := watch.Metadata(target.Metadata().Resource(k.gvr).Namespace(scope), labels, "")
	if k.full {
		source = watch.Objects(target.Dynamic().Resource(k.gvr).Namespace(scope), labels)
	}
	f := newFeed(scope, source, k)
	f.full, f.statuses, f.answered, f.pause = k.full, k.applier.status, relied, pause
	k.feeds[scope] = f
	f.Start(k.applier.ctx)
	return f
}

// lost implements sink: the objects of a scope are no longer watched. The holders that use the kind
// are notified, and find out at their next Apply what that means for them: nothing, if it is about
// other namespaces. They are notified again when the objects can be watched as before. What was
// refused at the first try is only tried again: those that it matters to wait for its outcome.
func (k *kind) lost(f *feed, err error, first bool) {
	k.mu.Lock()
	notServed := apierrors.IsNotFound(err)
	if k.feeds[f.scope] != f || notServed && f.version == "" {
		k.mu.Unlock()
		return // it was never served; its definition announces when it is
	}
	if first {
		k.mu.Unlock()
		if apierrors.IsForbidden(err) {
			k.regainLater(f)
		}
		return
	}
	concerned := slices.Collect(maps.Keys(k.users))
	for _, h := range concerned {
		k.waiting[h] = true
	}
	f.pause = retryLost // it was synced: what it took to get there says nothing of how long it is lost
	k.mu.Unlock()
	if notServed {
		k.applier.discard(k)
	} else {
		k.regainLater(f)
	}
	k.applier.tell(concerned)
}

func (k *kind) regainLater(lost *feed) { time.AfterFunc(lost.pause, func() { k.regain(lost) }) }

// regain starts a watch in place of one that was refused; if it is refused too, lost has it tried
// again. It does nothing if there is another by now, or none is needed any more.
func (k *kind) regain(lost *feed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.feeds[lost.scope] == lost && k.applier.ctx.Err() == nil && !k.allCovered() {
		k.start(lost.scope)
	}
}

// allCovered reports whether every namespace that a holder delivers to is watched. The caller holds
// the lock.
func (k *kind) allCovered() bool {
	for _, namespaces := range k.users {
		if !k.coversAll(namespaces) {
			return false
		}
	}
	return true
}

// coversAll reports whether the namespaces of a holder are watched; not if there are none, because the
// holder has only just begun and says later what it delivers to. The caller holds the lock.
func (k *kind) coversAll(namespaces map[string]bool) bool {
	for namespace := range namespaces {
		if !k.covered(namespace) {
			return false
		}
	}
	return len(namespaces) > 0
}

// covered reports whether a watch shows the objects of a namespace. The caller holds the lock.
func (k *kind) covered(namespace string) bool {
	for _, scope := range []string{everywhere, namespace} {
		if f := k.feeds[scope]; f != nil && f.State().Synced {
			return true
		}
	}
	return false
}

// interrupted reports whether a watch that has shown the objects of a namespace tries to do so again.
// The caller holds the lock.
func (k *kind) interrupted(namespace string) bool {
	for _, scope := range []string{everywhere, namespace} {
		if f := k.feeds[scope]; f != nil && f.version != "" && !f.State().Ended {
			return true
		}
	}
	return false
}

// denial returns why a namespace may not or cannot be watched; nil if it is watched.
func (k *kind) denial(namespace string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.denied(namespace)
}

// awaitAllowed is like denial, and has a holder be notified when its objects are watched after all.
func (k *kind) awaitAllowed(namespace string, h *holder) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.denied(namespace)
	if err != nil {
		k.waiting[h] = true
		k.users[h][namespace] = true // it may be new to the holder, which says only at its end what it delivers to
	}
	return err
}

// denied is denial for a caller that holds the lock.
func (k *kind) denied(namespace string) error {
	if k.covered(namespace) {
		return nil
	}
	for _, scope := range []string{namespace, everywhere} {
		if f := k.feeds[scope]; f != nil && watch.IsUnwatchable(f.State().Err) {
			return f.State().Err
		}
	}
	return nil
}

// watchFully makes watches include spec and status from now on. What is known of objects is kept,
// and compared with what the new watches show.
func (k *kind) watchFully() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.full {
		return
	}
	k.full = true
	k.restart()
}

// lookAnew lists the objects again if their health is known from what the watches have shown.
func (k *kind) lookAnew() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.full {
		k.restart()
	}
}

// restart starts the watches again. The caller holds the lock.
func (k *kind) restart() {
	for scope, f := range k.feeds {
		if !f.State().Ended {
			k.start(scope)
		}
	}
}

// stopNamespaces ends the watches by namespace, once one covers them all. The caller holds the lock.
func (k *kind) stopNamespaces() {
	for scope, f := range k.feeds {
		if scope != everywhere {
			f.End()
			delete(k.feeds, scope)
		}
	}
}

// use records which namespaces a holder delivers to, and ends the watches of those that no holder
// delivers to any more.
func (k *kind) use(h *holder, namespaces map[string]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.users[h] = namespaces
	if len(k.feeds) == 1 && k.feeds[everywhere] != nil {
		return // the one watch serves all, however many there are
	}
	used := map[string]bool{everywhere: true}
	for _, namespaces := range k.users {
		for namespace := range namespaces {
			used[namespace] = true
		}
	}
	for scope, f := range k.feeds {
		if !used[scope] {
			f.End()
			delete(k.feeds, scope)
		}
	}
}

// leave drops all that is known on behalf of a holder: what it applied, by name, and what it waits
// for. It returns true if the kind has no users any more; its watches have ended then.
func (k *kind) leave(h *holder, applied []types.NamespacedName) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name := range k.waits[h] {
		applied = append(applied, name)
	}
	delete(k.users, h)
	delete(k.waiting, h)
	delete(k.waits, h)
	if len(k.users) == 0 {
		for _, f := range k.feeds {
			f.End()
		}
		clear(k.feeds)
		clear(k.objects)
		return true
	}
	for _, name := range applied {
		o := k.objects[name]
		if o == nil {
			continue
		}
		if o.record != nil && o.record.holder == h {
			o.record = nil
		}
		o.waiting = slices.DeleteFunc(o.waiting, func(other *holder) bool { return other == h })
		k.tidy(name)
	}
	return false
}

// awaitServed registers a holder to be notified when the objects of the kind can be watched again.
func (k *kind) awaitServed(h *holder) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting[h] = true
}

// join adds a holder to those that use the kind.
func (k *kind) join(h *holder) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.users[h] == nil {
		k.users[h] = make(map[string]bool)
	}
}

// abandoned reports whether a watch of the kind has given up because the kind was not found.
func (k *kind) abandoned() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range k.feeds {
		if f.State().Ended && watch.IsKindNotFound(f.State().Err) {
			return true
		}
	}
	return false
}
