package cluster

import "sync"

// pool sums up what all clusters take of the memory of this process. When that is too much, the one that
// takes most is disconnected, for the sake of the others.
type pool struct {
	most int64
	// what is summed up, for the error that the cluster is disconnected with.
	what string

	mu      sync.Mutex
	sum     int64
	holders map[*holder]struct{}
}

func newPool(most int64, what string) *pool {
	return &pool{most: most, what: what, holders: map[*holder]struct{}{}}
}

// holder is what one cluster takes of a pool. It is safe for concurrent use.
type holder struct {
	pool *pool
	// over is called when the cluster is to be disconnected. It must not block.
	over func(error)

	// Guarded by the lock of the pool.
	held int64
	cut  bool // over was called, and what is held does not count any more until all of it is gone
}

func (p *pool) holder(over func(error)) *holder { return &holder{pool: p, over: over} }

// add changes what the cluster takes.
func (h *holder) add(weight int64) {
	if heaviest := h.change(weight); heaviest != nil {
		heaviest.over(&LimitError{What: h.pool.what, Most: mebibytes(h.pool.most)})
	}
}

// change is add without the consequences: it returns the cluster that is to be disconnected, if any.
func (h *holder) change(weight int64) (heaviest *holder) {
	p := h.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	h.held += weight
	if h.cut {
		h.cut = h.held > 0
		return nil
	}
	p.sum += weight
	if p.holders[h] = struct{}{}; h.held == 0 {
		delete(p.holders, h)
	}
	if p.sum <= p.most {
		return nil
	}
	for other := range p.holders {
		if heaviest == nil || other.held > heaviest.held {
			heaviest = other
		}
	}
	delete(p.holders, heaviest)
	p.sum -= heaviest.held
	heaviest.cut = true
	return heaviest
}

// isCut reports whether the cluster takes more than all others when it was too much for all together, and has
// not given it back.
func (h *holder) isCut() bool {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	return h.cut
}
