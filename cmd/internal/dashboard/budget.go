package dashboard

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"waybill.dev/waybill/sync/render"
)

// share is how many requests that read clusters are served: so many in a second in the long run, so many of them at
// once before that counts, and so many at a time.
type share struct {
	perSecond      rate.Limit
	burst, atATime int
}

var (
	shareOfEach = share{perSecond: 10, burst: 60, atATime: 20}
	shareOfAll  = share{perSecond: 200, burst: 600, atATime: 400}
)

// shareOfPages is how many pages from memory are shown to one user: those of many tabs that are opened at once, and of a few that follow
// what changes all the time. They cost no cluster anything, and others nothing but the time of a core.
var shareOfPages = share{perSecond: 10, burst: 400}

const (
	// maxLogs is how many logs are followed at a time, and maxLogsEach how many of one user. Each is a stream of
	// an API server.
	maxLogs     = 1000
	maxLogsEach = 20
	// maxWatches is how many kinds and namespaces of trees are watched at a time, and maxWatchesEach how many for one user.
	maxWatches     = 3000
	maxWatchesEach = 200
	// freeAgain is when those may ask again who have as much under way as they may.
	freeAgain  = 5 * time.Second
	closeAgain = time.Minute
)

// budget bounds what the users of a dashboard in the hub have it ask of clusters, so that none takes it from the others. An
// account of a user is there as long as it is not what it was at the beginning. It is safe for concurrent use.
type budget struct {
	now       func() time.Time
	each, all share
	pages     share // of each

	mu    sync.Mutex
	whole *spending
	by    map[string]*spending // by name of the user
	swept time.Time
}

// spending is what is left to a user, or to all of them.
type spending struct {
	requests *rate.Limiter
	pages    *rate.Limiter
	atATime  int
	logs     int
	watches  int
}

func newBudget() *budget { return budgetOf(shareOfEach, shareOfAll) }

func budgetOf(each, all share) *budget {
	return &budget{now: time.Now, each: each, all: all, pages: shareOfPages, whole: &spending{requests: rate.NewLimiter(all.perSecond, all.burst)}, by: map[string]*spending{}}
}

// of returns the account of a user. The caller holds the lock.
func (b *budget) of(name string) *spending {
	now := b.now()
	if now.Sub(b.swept) > time.Minute {
		b.swept = now
		for name, one := range b.by {
			full := one.requests.TokensAt(now) >= float64(b.each.burst) && one.pages.TokensAt(now) >= float64(b.pages.burst)
			if full && one.atATime == 0 && one.logs == 0 && one.watches == 0 {
				delete(b.by, name)
			}
		}
	}
	one := b.by[name]
	if one == nil {
		one = &spending{requests: rate.NewLimiter(b.each.perSecond, b.each.burst), pages: rate.NewLimiter(b.pages.perSecond, b.pages.burst)}
		b.by[name] = one
	}
	return one
}

// request takes a request of a user, and returns the function that ends it; if there is none left, when to ask again.
func (b *budget) request(name string) (end func(), again time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.of(name)
	if own.atATime >= b.each.atATime || b.whole.atATime >= b.all.atATime {
		return nil, freeAgain
	}
	now := b.now()
	for _, one := range []*spending{own, b.whole} {
		if again := untilOne(one.requests, now); again > 0 {
			return nil, again
		}
	}
	for _, one := range []*spending{own, b.whole} {
		one.requests.AllowN(now, 1)
		one.atATime++
	}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		own.atATime--
		b.whole.atATime--
	}, 0
}

// untilOne returns when there is something left; zero if there is.
func untilOne(of *rate.Limiter, now time.Time) time.Duration {
	left := of.TokensAt(now)
	if left >= 1 {
		return 0
	}
	return time.Duration((1 - left) / float64(of.Limit()) * float64(time.Second))
}

// page takes a page from memory; if there is none left for the user, it returns when to ask again.
func (b *budget) page(name string) (again time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, own := b.now(), b.of(name)
	if again := untilOne(own.pages, now); again > 0 {
		return again
	}
	own.pages.AllowN(now, 1)
	return 0
}

// log takes a log that a user follows, and returns the function that ends it; if there is none left, when to ask again.
func (b *budget) log(name string) (end func(), again time.Duration) {
	end = b.lasting(name, maxLogsEach, maxLogs, func(s *spending) *int { return &s.logs })
	if end == nil {
		return nil, closeAgain
	}
	return end, 0
}

// watch takes a watch of a user, and returns the function that ends it; nil if there is none left.
func (b *budget) watch(name string) (end func()) {
	return b.lasting(name, maxWatchesEach, maxWatches, func(s *spending) *int { return &s.watches })
}

// lasting takes one of what lasts, of which a user, and all together, have so many at most.
func (b *budget) lasting(name string, each, all int, of func(*spending) *int) (end func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.of(name)
	if *of(own) >= each || *of(b.whole) >= all {
		return nil
	}
	*of(own)++
	*of(b.whole)++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		*of(own)--
		*of(b.whole)--
	}
}

// reads serves what reads clusters, as far as the budget goes. What it renders takes turns with what others have rendered.
func (s *server) reads(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(render.On(r.Context(), render.Terms{For: viewerOf(r).name}))
		if s.budget == nil {
			serve(w, r)
			return
		}
		end, again := s.budget.request(viewerOf(r).name)
		if end == nil {
			askAgain(w, again)
			s.fail(w, r, http.StatusTooManyRequests, "Too many requests", errors.New("you have asked for more than the dashboard reads for one user, or all have: reload the page in a few seconds"))
			return
		}
		defer end()
		serve(w, r)
	}
}

// remembers serves a page from memory, as far as the budget goes.
func (s *server) remembers(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if again := s.pageAgain(viewerOf(r)); again > 0 {
			askAgain(w, again)
			s.fail(w, r, http.StatusTooManyRequests, "Too many requests", errors.New("you have asked for more pages than are shown to one user: reload the page in a few seconds"))
			return
		}
		serve(w, r)
	}
}

// pageAgain takes a page from memory of a viewer; if there is none left, it returns when to ask again.
func (s *server) pageAgain(v *viewer) time.Duration {
	if s.budget == nil {
		return 0
	}
	return s.budget.page(v.name)
}

// spend takes what it costs to begin a stream that reads a cluster; errTooMany if there is nothing left. How many last at a time
// is bounded elsewhere.
func (s *server) spend(v *viewer) error {
	if s.budget == nil {
		return nil
	}
	end, _ := s.budget.request(v.name)
	if end == nil {
		return errTooMany
	}
	end()
	return nil
}

// watching takes a watch of a viewer, and returns the function that ends it; nil if there is none left.
func (s *server) watching(v *viewer) (end func()) {
	if s.budget == nil {
		return func() {}
	}
	return s.budget.watch(v.name)
}

// askAgain says when a request may be sent again.
func askAgain(w http.ResponseWriter, again time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(again.Seconds())))))
}
