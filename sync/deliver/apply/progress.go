package apply

import "sync/atomic"

// Progress counts how far an Apply has come. The zero value is that of one that has not begun. It is
// safe for concurrent use.
type Progress struct{ applied, all atomic.Int64 }

// Counts returns how many of the requested objects are known to be as requested, and how many were
// requested.
func (p *Progress) Counts() (applied, all int) { return int(p.applied.Load()), int(p.all.Load()) }

// begin resets the counters.
func (p *Progress) begin(all int) {
	if p != nil {
		p.applied.Store(0)
		p.all.Store(int64(all))
	}
}

// add counts objects that are as requested.
func (p *Progress) add(n int) {
	if p != nil {
		p.applied.Add(int64(n))
	}
}
