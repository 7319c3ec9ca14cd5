package dashboard

import (
	"net/http"
	"time"
)

const (
	// gatherFor is how long changes are gathered before a page is told to fetch itself again.
	gatherFor = 250 * time.Millisecond
	// pingEvery is how often a stream is written to at least, so that one that nobody reads is found out.
	pingEvery = 25 * time.Second
	// takeWithin is how long a browser may take to read what is written to its stream.
	takeWithin = 10 * time.Second
)

// live tells a page, by a stream of server-sent events, when one of the kinds that it is about has changed.
// The query has the kinds, and the object that the page shows if that is not of the hub's inventory.
func (s *server) live(w http.ResponseWriter, r *http.Request) {
	changes, end := s.inventory.feed.subscribe(r.URL.Query()["kind"])
	if changes == nil {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "Too many pages are open.", http.StatusServiceUnavailable)
		return
	}
	defer end()
	if err := s.followObject(r, changes); err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	stream := http.NewResponseController(w)
	send := func(text string) bool {
		_ = stream.SetWriteDeadline(time.Now().Add(takeWithin)) // without one, it is only found out later
		_, err := w.Write([]byte(text))
		return err == nil && stream.Flush() == nil
	}
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for ok := send(": connected\n\n"); ok; {
		select {
		case <-r.Context().Done():
			return
		case <-s.ctx.Done():
			return
		case <-ping.C:
			ok = send(": still there\n\n")
		case <-changes:
			if !pause(r, gatherFor) {
				return
			}
			select {
			case <-changes:
			default:
			}
			ok = send("event: change\ndata: {}\n\n")
		}
	}
}

// pause waits, and reports whether the request goes on.
func pause(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-r.Context().Done():
		return false
	case <-timer.C:
		return true
	}
}
