package cluster

import (
	"context"
	"sync"
	"time"
)

// smallAnswer is how many bytes of an answer are received whatever else is under way.
const smallAnswer = 16 << 10

// underWay sums up, over all clusters, the weight of the answers that are being received, or were a
// moment ago and are being decoded.
type underWay struct {
	mu     sync.Mutex
	sum    int64
	shares map[*share]struct{}
}

func newUnderWay() *underWay { return &underWay{shares: map[*share]struct{}{}} }

// share is what one cluster has under way. Past maxUnderWay, one of its answers goes on at a time, and
// the others wait.
type share struct {
	all *underWay
	// over is called when the cluster is to be disconnected, for the sake of the others.
	over func(error)
	turn chan struct{} // holds one while an answer has the turn

	// Guarded by the lock of all.
	held int64
	cut  bool // over was called, and what is held does not count any more
}

func (u *underWay) share(over func(error)) *share {
	return &share{all: u, over: over, turn: make(chan struct{}, 1)}
}

// add changes what the cluster has under way. If that is too much for all clusters together, the one
// that has most of it is disconnected.
func (s *share) add(weight int64) {
	if heaviest := s.change(weight); heaviest != nil {
		heaviest.over(&LimitError{What: "the decoded size of all answers under way, most of them of this cluster,", Most: mebibytes(maxAllUnderWay)})
	}
}

// change is add without the consequences: it returns the cluster that is to be disconnected, if any.
func (s *share) change(weight int64) (heaviest *share) {
	u := s.all
	u.mu.Lock()
	defer u.mu.Unlock()
	s.held += weight
	if s.cut {
		s.cut = s.held > 0
		return nil
	}
	u.sum += weight
	if u.shares[s] = struct{}{}; s.held == 0 {
		delete(u.shares, s)
	}
	if u.sum <= maxAllUnderWay {
		return nil
	}
	for other := range u.shares {
		if heaviest == nil || other.held > heaviest.held {
			heaviest = other
		}
	}
	delete(u.shares, heaviest)
	u.sum -= heaviest.held
	heaviest.cut = true
	return heaviest
}

func (s *share) full() bool {
	s.all.mu.Lock()
	defer s.all.mu.Unlock()
	return s.held > maxUnderWay
}

// part is what one answer has under way. It is safe for concurrent use.
type part struct {
	share *share

	mu     sync.Mutex
	held   int64
	turned bool // it has the turn
	closed bool
}

// await returns nil as soon as the answer, of which so many bytes were received, may go on.
func (p *part) await(ctx context.Context, received int64) error {
	p.mu.Lock()
	turned := p.turned
	p.mu.Unlock()
	if turned || received < smallAnswer || !p.share.full() {
		return nil
	}
	select {
	case p.share.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		<-p.share.turn
		return context.Canceled
	}
	p.turned = true
	return nil
}

// add takes note of more of the answer.
func (p *part) add(weight int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.held += weight
		p.share.add(weight)
	}
}

// end takes note that a document was received as a whole. It counts until it is decoded, which nobody
// tells: until as much could have been received again.
func (p *part) end(last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held, turned := p.held, p.turned
	p.held, p.turned, p.closed = 0, false, p.closed || last
	release := func() {
		p.share.add(-held)
		if turned {
			<-p.share.turn
		}
	}
	if held <= paceStep {
		release()
		return
	}
	time.AfterFunc(time.Duration(float64(held)/weightPerSecond*float64(time.Second)), release)
}
