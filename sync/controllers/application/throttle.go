package application

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/keyed"
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
	wake  func(types.NamespacedName)
	byKey keyed.Map[types.NamespacedName, throttled]
}

// throttled is what is known of one Application.
type throttled struct {
	// waiting: it is about to be enqueued.
	waiting bool
	// rest is the last one; the zero value if its status was not written yet.
	rest rest
	// held is since when its status is held back; zero if it is not.
	held time.Time
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

func newThrottle(wake func(types.NamespacedName)) *throttle { return &throttle{wake: wake} }

// change changes what is known of an Application, and keeps nothing of one of which there is nothing to know.
func (t *throttle) change(key types.NamespacedName, f func(*throttled)) {
	t.byKey.Change(key, func(one throttled) (throttled, bool) {
		f(&one)
		return one, one != throttled{}
	})
}

// soon enqueues an Application, but not at once.
func (t *throttle) soon(key types.NamespacedName) {
	t.change(key, func(one *throttled) {
		if one.rest.disturb(); one.waiting {
			return
		}
		one.waiting = true
		wait := max(gather, one.rest.left())
		if one.rest.left() < -maxRest {
			wait = promptly
			one.rest = rest{until: time.Now(), length: gather / 2} // the next are gathered, written or not
		}
		time.AfterFunc(wait, func() { t.end(key) })
	})
}

// end ends the gathering, unless the Application was written in the meantime and rests.
func (t *throttle) end(key types.NamespacedName) {
	var left time.Duration
	t.change(key, func(one *throttled) {
		left = one.rest.left()
		one.waiting = left > 0
	})
	if left > 0 {
		time.AfterFunc(left, func() { t.end(key) })
		return
	}
	t.wake(key)
}

// wrote records that a status of that size, in bytes, was written.
func (t *throttle) wrote(key types.NamespacedName, size int) {
	t.change(key, func(one *throttled) {
		length := max(one.rest.next(), restAfter(size))
		one.rest = rest{until: time.Now().Add(length), length: length}
		if one.waiting { // it changed while the status was on its way
			one.rest.changed = time.Now()
		}
	})
}

// forget drops the state of an Application that is gone.
func (t *throttle) forget(key types.NamespacedName) {
	t.change(key, func(one *throttled) { *one = throttled{waiting: one.waiting} })
}

// hold reports whether the status of an Application is held back. It is as long as wanted, but no
// longer than patience; when that is over, the Application is enqueued.
func (t *throttle) hold(key types.NamespacedName, wanted bool) (held bool) {
	t.change(key, func(one *throttled) {
		switch {
		case !wanted:
			one.held = time.Time{}
		case one.held.IsZero():
			since := time.Now()
			one.held = since
			time.AfterFunc(patience, func() { t.letGo(key, since) })
		}
		held = wanted && time.Since(one.held) < patience
	})
	return held
}

// impatient reports whether what the status of an Application was held back for has not happened in
// time.
func (t *throttle) impatient(key types.NamespacedName) bool {
	since := t.byKey.Get(key).held
	return !since.IsZero() && time.Since(since) >= patience
}

// letGo enqueues an Application whose status is still held back since then.
func (t *throttle) letGo(key types.NamespacedName, since time.Time) {
	if t.byKey.Get(key).held.Equal(since) {
		t.soon(key)
	}
}

// restAfter returns how long nothing is written after a status of that size.
func restAfter(size int) time.Duration {
	return time.Duration(size) * time.Second / writeRate
}
