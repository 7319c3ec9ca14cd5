package cluster

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// breaker is the transport to an API server that all its clients share. Only the probe opens and
// closes it; a request that fails, or that gets no answer for a while, merely asks for a probe. So
// neither a lost connection nor a slow request makes a cluster unreachable, and a server that hangs
// is detected within seconds.
type breaker struct {
	base http.RoundTripper
	// host that requests may go to; a redirect to another host is refused, because it would carry
	// the credentials there.
	host string
	// patience is how long a request may go unanswered before suspect is called.
	patience time.Duration
	// suspect asks for a probe without waiting for it.
	suspect func()

	answered atomic.Int64 // when the server last answered anything, in Unix nanoseconds

	mu   sync.Mutex
	open error         // what requests get; nil while closed
	back chan struct{} // closed when the breaker closes; nil while it is closed
	gone bool          // the breaker stays open for good
}

// RoundTrip sends a request unless the breaker is open. In that case a watch waits rather than
// fails, so that informers continue as soon as the cluster is back, not when their own back-off
// ends. Only informers watch, so no other client waits. A watch that would resume from a resource
// version fails then: the cluster may have been restored meanwhile, and may not have reached that
// version yet.
func (b *breaker) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Host != b.host {
		return nil, fmt.Errorf("refuse request to %s: the API server is %s", req.URL.Host, b.host)
	}
	waited, err := b.pass(req)
	if err != nil {
		return nil, err
	}
	if waited && goesOn(req) {
		return nil, errMissed
	}
	impatient := time.AfterFunc(b.patience, b.suspect)
	resp, err := b.base.RoundTrip(req)
	impatient.Stop()
	if err == nil {
		b.judge(resp)
		return resp, nil
	}
	if req.Context().Err() == nil {
		b.suspect()
	}
	if open := b.err(); open != nil {
		return nil, open
	}
	return nil, failed(req, err)
}

// failed wraps err so that its text is the same for every request that fails in this way. Errors
// that client-go compares, and those of a context that ended, are returned as they are.
func failed(req *http.Request, err error) error {
	if req.Context().Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return &requestError{cause: err}
}

// requestError is a request that got no answer.
type requestError struct{ cause error }

func (e *requestError) Error() string { return describe(e.cause) }

func (e *requestError) Unwrap() error { return e.cause }

// judge treats an answer as a sign of life, unless it refuses the credentials: otherwise requests
// that all fail would keep delaying the probe, which reports the refusal.
func (b *breaker) judge(resp *http.Response) {
	if resp.StatusCode == http.StatusUnauthorized {
		b.suspect()
		return
	}
	b.answered.Store(time.Now().UnixNano())
}

// errMissed is the error of a watch that was to go on where it was before the cluster was lost.
var errMissed = errors.New("the cluster was lost meanwhile: list again")

// pass returns no error as soon as the request may be sent, and whether it had to wait.
func (b *breaker) pass(req *http.Request) (waited bool, err error) {
	for ; ; waited = true {
		b.mu.Lock()
		open, back, gone := b.open, b.back, b.gone
		b.mu.Unlock()
		if open == nil {
			return waited, nil
		}
		if gone || !isWatch(req) {
			return waited, open
		}
		select {
		case <-back:
		case <-req.Context().Done():
			return waited, req.Context().Err()
		}
	}
}

// err returns the error that requests currently get; nil while the breaker is closed.
func (b *breaker) err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}

// returned returns a channel that is closed when the cluster is back, or gone for good; nil while
// the cluster answers.
func (b *breaker) returned() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.back
}

// trip makes requests fail with err until reset.
func (b *breaker) trip(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return
	}
	b.open = err
	if b.back == nil {
		b.back = make(chan struct{})
	}
}

func (b *breaker) reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil || b.gone {
		return
	}
	b.open = nil
	close(b.back)
	b.back = nil
}

// end makes all requests fail with err for good, including watches.
func (b *breaker) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		return
	}
	b.open, b.gone = err, true
	if b.back == nil {
		b.back = make(chan struct{})
	}
	close(b.back)
}

// lastAnswer returns when the server last answered a request; zero if never.
func (b *breaker) lastAnswer() time.Time {
	if at := b.answered.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

func isWatch(req *http.Request) bool {
	return req.Method == http.MethodGet && strings.Contains(req.URL.RawQuery, "watch=") &&
		req.URL.Query().Get("watch") != "false"
}

// goesOn reports whether a watch begins at a resource version, rather than with all objects.
func goesOn(req *http.Request) bool {
	query := req.URL.Query()
	version := query.Get("resourceVersion")
	return version != "" && version != "0" && query.Get("sendInitialEvents") != "true"
}
