package application

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// gather is how long changes of one Application are gathered before it is reconciled, so that
	// changes that come at once, as from one `kubectl apply`, are one write.
	gather = 100 * time.Millisecond
	// maxRest is how long an Application that keeps changing rests after a write, in the end: the
	// rest doubles from gather on. So a burst is few writes, however long it takes.
	maxRest = 2 * time.Second
	// writeRate bounds how much of the status of one Application is written, in bytes per second: a
	// status of maxStatusBytes is written at most every four seconds.
	writeRate = maxStatusBytes / 4
)

// throttle wakes each Application once for all changes within gather, and, after its status was
// written, once for all changes within a rest. The rest is longer the more was written, and the
// longer the Application has kept changing.
type throttle struct {
	wake func(types.NamespacedName)

	mu      sync.Mutex
	waiting map[types.NamespacedName]bool
	rests   map[types.NamespacedName]rest
}

// rest is the time after a write of an Application's status in which it is not written again.
type rest struct {
	until  time.Time
	length time.Duration
	// disturbed: something changed before it was over.
	disturbed bool
}

func (r rest) left() time.Duration { return time.Until(r.until) }

func newThrottle(wake func(types.NamespacedName)) *throttle {
	return &throttle{wake: wake, waiting: make(map[types.NamespacedName]bool), rests: make(map[types.NamespacedName]rest)}
}

// soon wakes an Application, but not at once.
func (p *throttle) soon(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting[key] {
		return
	}
	p.waiting[key] = true
	r := p.rests[key]
	if r.left() > 0 {
		r.disturbed = true
		p.rests[key] = r
	}
	time.AfterFunc(max(gather, r.left()), func() { p.end(key) })
}

// end ends the gathering, unless the Application was written in the meantime and rests.
func (p *throttle) end(key types.NamespacedName) {
	p.mu.Lock()
	if left := p.rests[key].left(); left > 0 {
		p.mu.Unlock()
		time.AfterFunc(left, func() { p.end(key) })
		return
	}
	delete(p.waiting, key)
	p.mu.Unlock()
	p.wake(key)
}

// wrote records that a status of that size, in bytes, was written.
func (p *throttle) wrote(key types.NamespacedName, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	length := gather
	if last := p.rests[key]; last.disturbed { // it keeps changing
		length = min(2*last.length, maxRest)
	}
	length = max(length, restAfter(size))
	p.rests[key] = rest{until: time.Now().Add(length), length: length, disturbed: p.waiting[key]}
}

// forget drops the state of an Application that is gone.
func (p *throttle) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.rests, key)
}

// restAfter returns how long nothing is written after a status of that size.
func restAfter(size int) time.Duration {
	return time.Duration(size) * time.Second / writeRate
}
