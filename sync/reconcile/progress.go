package reconcile

import (
	"sync"
	"time"
)

// progressEvery is how long a job takes before its progress is shown, and the minimum time between two
// changes of what is shown. A quick job needs no progress, and its end is a write of the status
// anyway.
const progressEvery = 5 * time.Second

// Progress shows the passes of an object how far its job has come, while that takes long. What is shown
// should change in coarse steps, since each step is a write of the status. It serves one job after the
// other, and is safe for concurrent use.
type Progress[T comparable] struct {
	look func() T
	wake func()

	mu sync.Mutex
	// jobs counts the jobs that have begun, and timer is that of the last; nil if it has ended.
	jobs  int
	timer *time.Timer
	shown T
	shows bool
}

// NewProgress returns the progress of a job, which look observes. wake is called when there is
// something new to show.
func NewProgress[T comparable](look func() T, wake func()) *Progress[T] {
	return &Progress[T]{look: look, wake: wake}
}

// Begin is called when the job begins, which may be long after it was asked for. The function that it
// returns is called when the job ends.
func (p *Progress[T]) Begin() (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.jobs++
	job := p.jobs
	p.timer, p.shows = time.AfterFunc(progressEvery, func() { p.tick(job) }), false
	return func() { p.end(job) }
}

func (p *Progress[T]) end(job int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.jobs == job && p.timer != nil {
		p.timer.Stop()
		p.timer, p.shows = nil, false
	}
}

// tick observes a job, unless it has ended.
func (p *Progress[T]) tick(job int) {
	seen := p.look()
	p.mu.Lock()
	if p.jobs != job || p.timer == nil {
		p.mu.Unlock()
		return
	}
	news := !p.shows || seen != p.shown
	p.shown, p.shows = seen, true
	p.timer.Reset(progressEvery)
	p.mu.Unlock()
	if news {
		p.wake()
	}
}

// Running reports whether the job has begun, and not ended.
func (p *Progress[T]) Running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.timer != nil
}

// Shown returns how far the job is, and true; false if there is no job that takes long.
func (p *Progress[T]) Shown() (T, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown, p.shows
}

// steps is how many steps the progress of a large amount is shown in.
const steps = 20

// Coarse rounds the part that is done of a large amount down, so that it changes in few steps.
func Coarse(done, all int) int { return done - done%max(1, all/steps) }
