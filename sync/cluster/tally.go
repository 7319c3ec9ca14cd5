package cluster

import (
	"net/http"
	"sync"
	"time"
)

// heldFor is how long after it was received an answer counts as held: a page is shown by then, and a list has another page.
const heldFor = 5 * time.Minute

// tally sums up the weight of what clients have received of one server and may still hold: of each request, its last answer.
// Pages of one list add up, and so do the events of a watch that begins with all objects, which its reader gathers until the
// last of these has come. Once a request is made again, what it was answered before is garbage, as is a list once it is
// watched from there, and everything after heldFor. It is safe for concurrent use.
type tally struct {
	most int64
	kept *holder

	mu       sync.Mutex
	by       map[string]received // by request
	sum      int64
	sweeping bool
}

// received is what was answered to a request.
type received struct {
	weight int64
	last   time.Time
}

func newTally(most int64, kept *holder) *tally {
	return &tally{most: most, kept: kept, by: map[string]received{}}
}

// begin takes note of a request, and returns what its answer is added to; empty if that does not count.
func (t *tally) begin(req *http.Request) string {
	if t == nil {
		return ""
	}
	query := req.URL.Query()
	key := req.URL.Path + " " + query.Get("labelSelector") + " " + query.Get("fieldSelector")
	if query.Get("continue") == "" {
		t.drop(key)
	}
	if isWatch(req) && query.Get("sendInitialEvents") != "true" {
		return ""
	}
	return key
}

// add takes note of more of an answer, and reports whether everything together exceeds the limit.
func (t *tally) add(key string, weight int64) (exceeds bool) {
	if t == nil || key == "" || weight == 0 {
		return false
	}
	t.mu.Lock()
	t.by[key] = received{t.by[key].weight + weight, time.Now()}
	t.sum += weight
	exceeds = t.sum > t.most
	if !t.sweeping {
		t.sweeping = true
		time.AfterFunc(heldFor, t.sweep)
	}
	t.mu.Unlock()
	t.kept.add(weight)
	return exceeds
}

// drop takes note that what was received for requests is garbage.
func (t *tally) drop(keys ...string) {
	t.mu.Lock()
	var weight int64
	for _, key := range keys {
		weight += t.by[key].weight
		delete(t.by, key)
	}
	t.sum -= weight
	t.mu.Unlock()
	t.kept.add(-weight)
}

// sweep drops what was received heldFor ago, and goes on as long as something is held.
func (t *tally) sweep() {
	t.drop(t.older(heldFor)...)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sweeping = len(t.by) > 0; t.sweeping {
		time.AfterFunc(heldFor, t.sweep)
	}
}

// end takes note that everything is garbage.
func (t *tally) end() { t.drop(t.older(0)...) }

// older returns the requests whose answers were received so long ago.
func (t *tally) older(age time.Duration) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var keys []string
	for key, one := range t.by {
		if time.Since(one.last) >= age {
			keys = append(keys, key)
		}
	}
	return keys
}
