package application

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// gather is how long changes of one Application are gathered before it is reconciled, so that
	// changes that come at once, as from one `kubectl apply`, are one write, or two.
	gather = 100 * time.Millisecond
	// promptly is how long changes are gathered of an Application in which nothing has changed for
	// maxRest. What else comes is gathered after that.
	promptly = 25 * time.Millisecond
	// maxRest bounds the rest after a write. While an Application keeps changing, its rest doubles,
	// from gather on: a burst is few writes, however long it takes.
	maxRest = 2 * time.Second
	// patience is how long a status is held back for writes that are about to end.
	patience = time.Second
	// writeRate bounds how much of the status of one Application is written, in bytes per second: a
	// status of maxStatusBytes is written at most every four seconds.
	writeRate = maxStatusBytes / 4
)

// throttle enqueues each Application once for all changes within gather or promptly, and, after its status
// was written, once for all changes within a rest. The rest is longer the more was written, and the longer
// the Application has kept changing; it shrinks again when it no longer saves writes.
type throttle struct {
	wake func(types.NamespacedName)

	mu      sync.Mutex
	waiting map[types.NamespacedName]bool
	rests   map[types.NamespacedName]rest
	// held is since when statuses are held back.
	held map[types.NamespacedName]time.Time
}

// rest is the time after a write of an Application's status in which it is not written again.
type rest struct {
	until  time.Time
	length time.Duration
	// changed is when something changed first before it was over; zero if nothing has.
	changed time.Time
	// saved: another change came at least gather later. Without the rest it would have been another
	// write.
	saved bool
}

func (r rest) left() time.Duration { return time.Until(r.until) }

// disturb records that something changes now.
func (r *rest) disturb() {
	switch {
	case r.left() <= 0:
	case r.changed.IsZero():
		r.changed = time.Now()
	case time.Since(r.changed) >= gather:
		r.saved = true
	}
}

// next returns the length of the rest after this one: longer if something changed, shorter if this
// one was long and has saved no write all the same, and the shortest after a quiet one.
func (r rest) next() time.Duration {
	switch {
	case r.changed.IsZero():
		return gather
	case r.saved, r.length < maxRest/2:
		return min(2*r.length, maxRest)
	default:
		return r.length / 2
	}
}

func newThrottle(wake func(types.NamespacedName)) *throttle {
	return &throttle{
		wake:    wake,
		waiting: make(map[types.NamespacedName]bool),
		rests:   make(map[types.NamespacedName]rest),
		held:    make(map[types.NamespacedName]time.Time),
	}
}

// soon enqueues an Application, but not at once.
func (t *throttle) soon(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, rests := t.rests[key]
	if rests {
		r.disturb()
		t.rests[key] = r
	}
	if t.waiting[key] {
		return
	}
	t.waiting[key] = true
	wait := max(gather, r.left())
	if r.left() < -maxRest {
		wait = promptly
		t.rests[key] = rest{until: time.Now(), length: gather / 2} // the next are gathered, written or not
	}
	time.AfterFunc(wait, func() { t.end(key) })
}

// end ends the gathering, unless the Application was written in the meantime and rests.
func (t *throttle) end(key types.NamespacedName) {
	t.mu.Lock()
	if left := t.rests[key].left(); left > 0 {
		t.mu.Unlock()
		time.AfterFunc(left, func() { t.end(key) })
		return
	}
	delete(t.waiting, key)
	t.mu.Unlock()
	t.wake(key)
}

// wrote records that a status of that size, in bytes, was written.
func (t *throttle) wrote(key types.NamespacedName, size int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	length := max(t.rests[key].next(), restAfter(size))
	written := rest{until: time.Now().Add(length), length: length}
	if t.waiting[key] { // it changed while the status was on its way
		written.changed = time.Now()
	}
	t.rests[key] = written
}

// forget drops the state of an Application that is gone.
func (t *throttle) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.rests, key)
	delete(t.held, key)
}

// hold reports whether the status of an Application is held back. It is as long as wanted, but no
// longer than patience; when that is over, the Application is enqueued.
func (t *throttle) hold(key types.NamespacedName, wanted bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	since, held := t.held[key]
	switch {
	case !wanted:
		delete(t.held, key)
	case !held:
		since = time.Now()
		t.held[key] = since
		time.AfterFunc(patience, func() { t.letGo(key, since) })
	}
	return wanted && time.Since(since) < patience
}

// impatient reports whether what the status of an Application was held back for has not happened in
// time.
func (t *throttle) impatient(key types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	since, held := t.held[key]
	return held && time.Since(since) >= patience
}

// letGo enqueues an Application whose status is still held back since then.
func (t *throttle) letGo(key types.NamespacedName, since time.Time) {
	t.mu.Lock()
	held := t.held[key].Equal(since)
	t.mu.Unlock()
	if held {
		t.soon(key)
	}
}

// restAfter returns how long nothing is written after a status of that size.
func restAfter(size int) time.Duration {
	return time.Duration(size) * time.Second / writeRate
}
