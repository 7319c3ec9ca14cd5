package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"waybill.dev/waybill/cmd/internal/fleet"
)

// pace is how fast streams go.
type pace struct {
	// gather is how long changes are gathered before a page is notified to fetch itself again.
	gather time.Duration
	// ping is how often a stream is written to at least, so that one that is not read is noticed.
	ping time.Duration
	// take is how long a browser may take to read what is written to its stream.
	take time.Duration
	// review is how often it is asked whether the session goes on, and what the viewer may see.
	review time.Duration
	// life is how long a stream lasts at most. The page opens another. That of a log lasts as long as vouched where a proxy
	// has to be asked whether the session goes on.
	life, vouched time.Duration
}

var defaultPace = pace{
	gather: 250 * time.Millisecond, ping: 25 * time.Second, take: 10 * time.Second, review: reviewAgain, life: time.Hour, vouched: time.Minute,
}

// live notifies a page, by a stream of server-sent events, when one of the kinds that it is about has changed.
// The query has the kinds, and the object that the page shows if that is not of the hub's inventory, and what the page has
// seen: it is notified at once if something has changed between that and the stream. The stream ends
// with the session.
func (s *server) live(w http.ResponseWriter, r *http.Request) {
	v := visitOf(r)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if !v.until.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, v.until)
		defer cancel()
	}
	r = r.WithContext(ctx)
	if again := s.pageAgain(v.viewer); again > 0 {
		askAgain(w, again)
		http.Error(w, "Too many requests: the page is not followed for now.", http.StatusTooManyRequests)
		return
	}
	to, end, err := s.inventory.feed.subscribe(v.viewer, r.URL.Query()["kind"])
	if err != nil {
		askAgain(w, closeAgain)
		http.Error(w, "Too many pages are open: close some, or reload this one to see it as it is now.", http.StatusTooManyRequests)
		return
	}
	defer end()
	if seen, err := strconv.ParseUint(r.URL.Query().Get("seen"), 10, 64); err == nil {
		s.inventory.feed.catchUp(to, seen)
	}
	object, err := s.followObject(r, to)
	if err != nil && errors.Is(err, errTooMany) {
		askAgain(w, freeAgain)
		http.Error(w, "Too many requests: the page is not followed for now.", http.StatusTooManyRequests)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	t := &told{server: s, visit: v, stream: to, object: object, w: w, control: http.NewResponseController(w), reached: v.now()}
	t.sights = t.sight(ctx)
	t.run(ctx)
}

// told is a page that is open, and its viewer.
type told struct {
	*server
	visit
	stream  *stream
	object  *shown    // nil if the page is about kinds
	reached time.Time // when the viewer had a way into the cluster of the object
	sights  string
	w       http.ResponseWriter
	control *http.ResponseController
}

// run writes the stream until ctx ends, the session does, or the browser does not take it any more.
func (t *told) run(ctx context.Context) {
	ping := time.NewTicker(t.pace.ping)
	defer ping.Stop()
	review := time.NewTicker(t.pace.review)
	defer review.Stop()
	life := time.NewTimer(spread(t.pace.life))
	defer life.Stop()
	for ok := t.send(": connected\n\n"); ok; {
		select {
		case <-ctx.Done():
			return
		case <-t.ctx.Done():
			return
		case <-life.C:
			t.send(bye)
			return
		case <-ping.C:
			ok = t.send(": still there\n\n")
		case <-review.C:
			if t.over != nil && t.over() {
				t.send(bye)
				return
			}
			otherwise := t.looksOtherwise(ctx)
			if otherwise || t.object != nil && t.object.page == "rights" { // what else the viewer may is asked for that page alone
				ok = t.send(change)
			}
		case <-t.stream.woken:
			if !pause(ctx, t.pace.gather) {
				return
			}
			if text, unsaid := t.stream.toSay(); unsaid {
				ok = t.send(partial(text))
			}
			if ok && t.concerned(ctx, t.stream.take()) {
				ok = t.send(t.object.news(ctx))
			}
		}
	}
}

// spread returns up to a tenth more, so that not all that began at once ends at once.
func spread(d time.Duration) time.Duration { return d + rand.N(d/10+1) }

const (
	change = "event: change\ndata: {}\n\n"
	// bye has the page open another stream, or find out that the session has ended.
	bye = "event: bye\ndata: {}\n\n"
)

// partial has the page say which changes it does not follow.
func partial(text string) string {
	data, _ := json.Marshal(text) // a string can be encoded
	return "event: partial\ndata: " + string(data) + "\n\n"
}

// send writes to the stream, if there is something to write, and reports whether the browser takes it.
func (t *told) send(text string) bool {
	if text == "" {
		return true
	}
	_ = t.control.SetWriteDeadline(time.Now().Add(t.pace.take)) // without one, it is only found out later
	_, err := t.w.Write([]byte(text))
	taken := err == nil && t.control.Flush() == nil
	_ = t.control.SetWriteDeadline(time.Time{}) // HTTP/2 ends a stream at its deadline, whether or not it is written to
	return taken
}

// concerned reports whether something that has changed is for the viewer to see.
func (t *told) concerned(ctx context.Context, touched map[touch]bool) bool {
	if t.own || touched[touch{}] {
		return len(touched) > 0
	}
	for what := range touched {
		for _, f := range t.inventory.all() {
			if f.kind == what.kind && (what.namespace == "" || t.sees(ctx, f, what.namespace)) {
				return true
			}
		}
	}
	return false
}

// looksOtherwise reports whether the viewer may see more or less than when it was asked last.
func (t *told) looksOtherwise(ctx context.Context) bool {
	before := t.sights
	t.sights = t.sight(ctx)
	return before != t.sights
}

// sight says, in a text to compare, what of the page the viewer may see. It is asked for only where pages do not ask
// with the viewer's rights anyway.
func (t *told) sight(ctx context.Context) string {
	if t.own {
		return ""
	}
	var said []string
	for _, f := range t.inventory.all() {
		if !t.stream.about[f.kind] {
			continue
		}
		scope := t.scope(ctx, f)
		said = append(said, f.kind)
		for namespace := range scope.namespaces {
			said = append(said, f.kind+"/"+namespace)
		}
		if scope.all {
			said = append(said, f.kind+"/*")
		}
	}
	if t.object != nil && t.reaches(ctx) == nil {
		if ok, _ := t.may(ctx, t.object.in, t.object.what); ok {
			said = append(said, "object")
		}
	}
	slices.Sort(said)
	return strings.Join(said, " ")
}

// reaches returns why the viewer has no way into the cluster of the object any more: its KubernetesCluster and the kubeconfig are
// read again. While the hub does not answer, and none can be withdrawn, what was found before counts for reviewLost.
func (t *told) reaches(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reviewWithin)
	defer cancel()
	_, err := t.viewer.cluster(ctx, t.object.at)
	if err == nil {
		t.reached = t.now()
		return nil
	}
	away := errors.Is(err, fleet.ErrUnanswered) || unanswered(err) && !apierrors.IsTooManyRequests(err)
	if away && t.now().Sub(t.reached) < reviewLost {
		return nil
	}
	return err
}

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
