package cluster

import (
	"hash/maphash"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// newKept returns what sums up the weight of all objects that are kept of all clusters, and of what was
// discovered of them.
func newKept(most int64) *pool {
	return newPool(most, "the size of what is kept of all clusters, most of it of this one,")
}

// ledger sums up the weight of all objects of one engagement of a cluster that watches keep in memory.
type ledger struct {
	limits limits
	// over is called when the sum, or the number of objects of a kind, exceeds its limit.
	over func(error)
	// kept and underWay are what the cluster takes of that of all clusters.
	kept     *holder
	underWay *share
	// rewound is called when the API server turns out to have gone back in time.
	rewound func(error)

	mu    sync.Mutex // also that of its accounts
	sum   int64
	pages int64 // weight of the lists of which pages are missing
	ended bool
}

// add changes the sum, and reports whether it exceeds the limit. The caller holds the lock.
func (l *ledger) add(weight int64) (exceeds bool) {
	if l.ended {
		return false
	}
	l.sum += weight
	l.kept.add(weight)
	return l.sum > l.limits.kept
}

// receive changes the weight of all pages, and reports whether it exceeds the limit. The caller holds the
// lock.
func (l *ledger) receive(weight int64) (exceeds bool) {
	if l.ended {
		return false
	}
	l.pages += weight
	l.underWay.add(weight)
	return l.pages > l.limits.bodyWeight
}

// ledger returns the ledger of an engagement.
func (in *intake) ledger(rewound func(error)) *ledger {
	return &ledger{limits: in.limits, over: in.over, kept: in.kept, underWay: in.share, rewound: rewound}
}

// end takes note that the engagement has ended: what was kept is garbage.
func (l *ledger) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(-l.sum)
	l.receive(-l.pages)
	l.ended = true
}

// account counts and weighs the objects that one watcher, such as a reflector, keeps: those that it has
// listed, and what its watches have shown since. It is safe for concurrent use.
type account struct {
	ledger *ledger
	// what the objects are, for errors.
	what string
	// most is how many objects there may be; 0 means that only their weight counts.
	most int
	seed maphash.Seed

	// Guarded by the lock of the ledger.
	kept  map[uint64]int64 // weight by hash of namespace and name
	sum   int64
	pages pages
	// booked is true once the ledger knows of the account: a list that no watch follows is not kept.
	booked bool
}

func (l *ledger) account(what string, most int) *account {
	return &account{ledger: l, what: what, most: most, seed: maphash.MakeSeed(), kept: map[uint64]int64{}}
}

// list takes note of a page of a list; the first one resets the account.
func (a *account) list(page apiruntime.Object, first bool) error {
	if first {
		a.clear()
	}
	if a.receive(page, first) {
		return a.exceed("the size of lists, with that of "+a.what+",", mebibytes(a.ledger.limits.bodyWeight))
	}
	return meta.EachListItem(page, func(item apiruntime.Object) error { return a.put(item) })
}

// watched takes note of a watch that begins. If it starts with all objects, the account is reset.
func (a *account) watched(all bool) {
	if all {
		a.clear()
	}
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	if !a.booked {
		a.booked = true
		a.ledger.add(a.sum)
	}
}

// event takes note of an event of a watch.
func (a *account) event(e watch.Event) error {
	switch e.Type {
	case watch.Added, watch.Modified:
		return a.put(e.Object)
	case watch.Deleted:
		return a.set(e.Object, 0)
	}
	return nil
}

func (a *account) put(object apiruntime.Object) error { return a.set(object, weightOf(object)) }

// set takes note of the weight of an object; 0 means that it is not kept.
func (a *account) set(object apiruntime.Object, weight int64) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil // nothing that a watcher keeps
	}
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	key := maphash.Comparable(a.seed, [2]string{accessor.GetNamespace(), accessor.GetName()})
	change := weight - a.kept[key]
	a.sum += change
	if a.kept[key] = weight; weight == 0 {
		delete(a.kept, key)
	}
	heavy := a.booked && a.ledger.add(change) || a.sum > a.ledger.limits.kept
	switch {
	case a.most > 0 && len(a.kept) > a.most:
		return a.exceed("the number of "+a.what, strconv.Itoa(a.most))
	case heavy:
		return a.exceed("the size of its objects, with "+a.what+",", mebibytes(a.ledger.limits.kept))
	}
	return nil
}

func (a *account) exceed(what, most string) error {
	err := &LimitError{What: what, Most: most}
	a.ledger.over(err)
	return err
}

// clear resets the account.
func (a *account) clear() {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	if a.booked {
		a.ledger.add(-a.sum)
	}
	a.kept, a.sum = map[uint64]int64{}, 0
	a.leave()
}
