package applicationsnapshot

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/reconcile/turns"
)

// gate lets one snapshot of an application at a time quiesce it: the post-hook of one would release it
// under another. And it lets only so many snapshots begin at a time: an application that is quiesced
// while the VolumeSnapshots of many others are cut waits for theirs, too.
//
// A snapshot enters by both begin and enter; release ends both.
type gate struct {
	// ctx ends what waits for a turn.
	ctx context.Context
	// wake is called with the name of a snapshot that has its turn after it had to wait.
	wake func(types.NamespacedName)
	// lapse is how long a turn lasts. An application that does not come to rest, or a driver that hangs,
	// keeps nothing busy that others need.
	lapse time.Duration
	turns *turns.Turns

	mu      sync.Mutex
	holders map[types.NamespacedName]types.UID
	waiting map[types.NamespacedName]map[types.NamespacedName]bool
	begun   map[types.UID]*turn
}

// turn is that of one snapshot: waited for, then had, then over.
type turn struct {
	// had is true from when the snapshot has its turn, also when that is over.
	had bool
	// end gives the turn back, or ends waiting for it.
	end context.CancelFunc
}

// newGate returns a gate for as many snapshots at a time. Of one namespace, there are never so many that
// none is left to others.
func newGate(ctx context.Context, parallel int, lapse time.Duration, wake func(types.NamespacedName)) *gate {
	return &gate{
		ctx: ctx, wake: wake, lapse: lapse, turns: turns.NewEven(parallel),
		holders: map[types.NamespacedName]types.UID{},
		waiting: map[types.NamespacedName]map[types.NamespacedName]bool{},
		begun:   map[types.UID]*turn{},
	}
}

// begin reports whether it is the turn of a snapshot. If not, wake is called with its name when it is.
func (g *gate) begin(uid types.UID, name types.NamespacedName) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t := g.begun[uid]; t != nil {
		return t.had
	}
	ctx, end := context.WithCancel(g.ctx)
	t := &turn{had: g.turns.TryAcquire(name.Namespace), end: end}
	g.begun[uid] = t
	go g.serve(ctx, t, t.had, name)
	return t.had
}

// serve waits for a turn, unless the snapshot has it, and gives it back when it is over.
func (g *gate) serve(ctx context.Context, t *turn, had bool, name types.NamespacedName) {
	if !had {
		if g.turns.Acquire(ctx, name.Namespace) != nil {
			return // the snapshot does not wait any more
		}
		g.mu.Lock()
		t.had = true
		g.mu.Unlock()
		g.wake(name)
	}
	defer g.turns.Release(name.Namespace)
	lapsed := time.NewTimer(g.lapse)
	defer lapsed.Stop()
	select {
	case <-ctx.Done():
	case <-lapsed.C:
	}
}

// enter reports whether a snapshot holds the application now. If not, release of the other returns its
// name.
func (g *gate) enter(application types.NamespacedName, uid types.UID, name types.NamespacedName) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if holder := g.holders[application]; holder == "" || holder == uid {
		g.holders[application] = uid
		delete(g.waiting[application], name)
		return true
	}
	if g.waiting[application] == nil {
		g.waiting[application] = map[types.NamespacedName]bool{}
	}
	g.waiting[application][name] = true
	return false
}

// release ends the turn of a snapshot. It returns the names of those that wait for what it held; none if it
// held nothing.
func (g *gate) release(uid types.UID) []types.NamespacedName {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t := g.begun[uid]; t != nil {
		t.end()
		delete(g.begun, uid)
	}
	for application, holder := range g.holders {
		if holder != uid {
			continue
		}
		delete(g.holders, application)
		var names []types.NamespacedName
		for name := range g.waiting[application] {
			names = append(names, name)
		}
		delete(g.waiting, application)
		return names
	}
	return nil
}
