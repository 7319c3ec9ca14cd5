package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// smallAnswer is how many bytes of an answer are received whatever else is under way.
const smallAnswer = 16 << 10

// newUnderWay returns what sums up the weight of the answers that are being received, or were a moment ago
// and are being decoded, and of the pages of lists that are not complete.
func newUnderWay() *pool {
	return newPool(maxAllUnderWay, "the decoded size of all answers under way, most of them of this cluster,")
}

// share is what one cluster has under way. Past maxUnderWay, one of its answers goes on at a time, and
// the others wait.
type share struct {
	*holder
	turn     chan struct{} // holds one while an answer has the turn
	received atomic.Int64  // weight of answers alone
}

func (p *pool) share(over func(error)) *share {
	return &share{holder: p.holder(over), turn: make(chan struct{}, 1)}
}

// receive changes the weight of the answers that the cluster has under way.
func (s *share) receive(weight int64) {
	s.received.Add(weight)
	s.add(weight)
}

func (s *share) full() bool { return s.received.Load() > maxUnderWay }

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
		p.share.receive(weight)
	}
}

// end takes note that a document was received as a whole. It counts until it is decoded, of which
// there is no notification: until as much could have been received again.
func (p *part) end(last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	held, turned := p.held, p.turned
	p.held, p.turned, p.closed = 0, false, p.closed || last
	release := func() {
		p.share.receive(-held)
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
