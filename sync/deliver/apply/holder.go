package apply

import (
	"context"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
)

// holder is what an Applier knows of one owner.
type holder struct {
	owner Owner
	mark  string
	// health: the owner asked to be notified of changes of health.
	health atomic.Bool
	// applied and watched are what the last Apply and the last Watch left; nil if there was none.
	applied, watched atomic.Pointer[view]

	// moved: who holds objects has changed since the last Apply began.
	moved atomic.Bool

	// forgotten: Forget was called; a call that waited for its turn starts over with a new holder.
	forgotten atomic.Bool

	// turn is held by the one call that works for the owner. It guards the fields below.
	turn chan struct{}
	// records has what was applied for the owner, by object.
	records map[recordKey]*record
	// kinds are those that the owner uses; needed is what Apply needs of them.
	kinds  map[*kind]bool
	needed scopes
	// surveyed: strays were looked for; strays are those that were found, and are still there.
	surveyed bool
	strays   []recordKey
}

// scopes are namespaces of kinds.
type scopes map[*kind]map[string]bool

// add adds a namespace of a kind.
func (s scopes) add(k *kind, namespace string) {
	if s[k] == nil {
		s[k] = make(map[string]bool)
	}
	s[k][namespace] = true
}

// with returns all that is in s or in others.
func (s scopes) with(others scopes) scopes {
	all := make(scopes, len(s)+len(others))
	for _, one := range []scopes{s, others} {
		for k, namespaces := range one {
			for namespace := range namespaces {
				all.add(k, namespace)
			}
		}
	}
	return all
}

// recordKey identifies an object within an Applier.
type recordKey struct {
	kind *kind
	name types.NamespacedName
}

// view is what an owner has in the cluster.
type view struct {
	objects []recordKey
	// leaving are on their way out of the cluster.
	leaving []recordKey
	// strays are those that the last Apply has named.
	strays []recordKey
	// settled: everything was applied, and there is nothing to wait for.
	settled bool
	// health: the owner asked to be notified of changes of health.
	health bool
}

// scopes returns the namespaces of each kind that there are objects of.
func (v *view) scopes() scopes {
	found := make(scopes)
	if v != nil {
		for _, key := range v.objects {
			found.add(key.kind, key.name.Namespace)
		}
	}
	return found
}

// wantsHealth reports whether the owner asked to be notified of changes of health.
func (v *view) wantsHealth() bool { return v != nil && v.health }

// take waits until no other call works for an owner, and returns what is known of it. The caller
// must call release when it is done.
func (a *Applier) take(ctx context.Context, owner Owner) (*holder, error) {
	for {
		a.mu.Lock()
		h := a.holders[owner]
		if h == nil {
			h = &holder{
				owner:   owner,
				mark:    owner.String(),
				turn:    make(chan struct{}, 1),
				records: make(map[recordKey]*record),
				kinds:   make(map[*kind]bool),
			}
			a.holders[owner] = h
		}
		a.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case h.turn <- struct{}{}:
		}
		if !h.forgotten.Load() {
			return h, nil
		}
		a.drop(h)
	}
}

func (h *holder) release() { <-h.turn }

// Forget drops what is known of an owner, and ends the watches that have no other users. The
// objects stay as they are. It does not wait: if a call for the owner is under way, that happens
// when the call ends, before another begins.
func (a *Applier) Forget(owner Owner) {
	a.mu.Lock()
	h := a.holders[owner]
	a.mu.Unlock()
	if h == nil {
		return
	}
	h.forgotten.Store(true)
	select {
	case h.turn <- struct{}{}:
		a.drop(h)
	default:
		go func() {
			h.turn <- struct{}{}
			a.drop(h)
		}()
	}
}

// drop drops a forgotten holder, unless that has been done already, and ends the turn of the
// caller.
func (a *Applier) drop(h *holder) {
	defer h.release()
	a.mu.Lock()
	known := a.holders[h.owner] == h
	if known {
		delete(a.holders, h.owner)
	}
	a.mu.Unlock()
	if !known {
		return
	}
	a.unwatch(h, nil)
	for k := range h.kinds {
		a.leave(h, k)
	}
	a.definitions.Leave(h, nil)
	a.namespaces.leave(h, nil)
	a.holdings.leave(h, nil)
}
