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
	// writeRate bounds how much of the status of one Application is written, in bytes per second: a
	// status of maxStatusBytes is written at most every four seconds.
	writeRate = maxStatusBytes / 4
)

// throttle wakes each Application once for all changes within gather, and, after its status was
// written, once for all changes until that many bytes may be written again.
type throttle struct {
	wake func(types.NamespacedName)

	mu      sync.Mutex
	waiting map[types.NamespacedName]bool
	// rests holds until when an Application rests after a write, if that is longer than gather.
	rests map[types.NamespacedName]time.Time
}

func newThrottle(wake func(types.NamespacedName)) *throttle {
	return &throttle{wake: wake, waiting: make(map[types.NamespacedName]bool), rests: make(map[types.NamespacedName]time.Time)}
}

// soon wakes an Application, but not at once.
func (p *throttle) soon(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting[key] {
		return
	}
	p.waiting[key] = true
	time.AfterFunc(max(gather, time.Until(p.rests[key])), func() { p.end(key) })
}

// end ends the gathering, unless the Application was written in the meantime and rests.
func (p *throttle) end(key types.NamespacedName) {
	p.mu.Lock()
	if rest := time.Until(p.rests[key]); rest > 0 {
		p.mu.Unlock()
		time.AfterFunc(rest, func() { p.end(key) })
		return
	}
	delete(p.waiting, key)
	p.mu.Unlock()
	p.wake(key)
}

// wrote records that a status of that size, in bytes, was written: the larger it is, the longer
// changes are gathered before the next write.
func (p *throttle) wrote(key types.NamespacedName, size int) {
	rest := restAfter(size)
	p.mu.Lock()
	defer p.mu.Unlock()
	if delete(p.rests, key); rest > gather {
		p.rests[key] = time.Now().Add(rest)
	}
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
