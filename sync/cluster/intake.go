package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/time/rate"
)

// intake is a transport that bounds what an API server sends: how large a response is, and an event of
// a watch, what they become in memory, and how fast they come.
type intake struct {
	base http.RoundTripper
	// root is the path of the server, before that of each request.
	root   string
	limits limits
	pace   *rate.Limiter
	// over is called when a limit is exceeded. It must not block.
	over func(error)
	// share is what is under way, and kept what is kept of the cluster.
	share *share
	kept  *holder
	// tally sums up what clients may hold; nil where that is counted by what they keep.
	tally *tally

	mu sync.Mutex
	// discovered is the weight of the last answer to each request of discovery, and total their sum.
	discovered map[string]int64
	total      int64
	ended      bool
}

func newIntake(base http.RoundTripper, root string, o Options, over func(error)) *intake {
	return &intake{
		base: base, root: root, limits: o.limits, over: over, share: o.underWay.share(over), kept: o.kept.holder(over),
		pace:       rate.NewLimiter(weightPerSecond, int(o.limits.bodyWeight)),
		discovered: map[string]int64{},
	}
}

// RoundTrip implements http.RoundTripper.
func (in *intake) RoundTrip(req *http.Request) (*http.Response, error) {
	var cancel context.CancelFunc
	ctx := req.Context()
	if isWatch(req) {
		ctx, cancel = context.WithCancel(ctx)
	} else {
		ctx, cancel = context.WithTimeout(ctx, bodyTimeout)
		req = withoutProtobuf(req)
	}
	req = req.WithContext(ctx)
	held := in.tally.begin(req)
	resp, err := in.base.RoundTrip(req)
	if err != nil {
		cancel()
		return nil, err
	}
	shortenRetry(resp.Header)
	if err := in.check(req, resp); err != nil {
		_ = resp.Body.Close()
		cancel()
		return nil, err
	}
	b := in.bounded(req, resp, cancel)
	if resp.StatusCode < http.StatusMultipleChoices && !b.discovery {
		b.held = held
	}
	resp.Body = b
	return resp, nil
}

// withoutProtobuf asks for JSON where both would do: the decoded size of a list in protobuf is not
// known before it is decoded.
func withoutProtobuf(req *http.Request) *http.Request {
	accepted := strings.Split(req.Header.Get("Accept"), ",")
	var kept []string
	for _, one := range accepted {
		if !strings.Contains(one, "kubernetes.protobuf") {
			kept = append(kept, one)
		}
	}
	if req.Method != http.MethodGet || len(kept) == 0 || len(kept) == len(accepted) {
		return req
	}
	req = req.Clone(req.Context())
	req.Header.Set("Accept", strings.Join(kept, ","))
	return req
}

// shortenRetry has clients wait for maxRetryAfter at most before they ask again: they sleep for as long
// as the API server says, and hold up what waits for them.
func shortenRetry(header http.Header) {
	const name = "Retry-After"
	if header.Get(name) == "" {
		return
	}
	if seconds, err := strconv.Atoi(header.Get(name)); err != nil || seconds < 0 || seconds > maxRetryAfter {
		header.Set(name, strconv.Itoa(maxRetryAfter))
	}
}

var errYAML = errors.New("the API server answers in YAML, which is not accepted")

// check refuses what is not to be read at all. A redirect would lead requests, and the credentials that
// are added to them, wherever the server likes.
func (in *intake) check(req *http.Request, resp *http.Response) error {
	if resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.Header.Get("Location") != "" {
		return fmt.Errorf("the API server answers %s with a redirect, which is not followed: set the kubeconfig's server to the address of the API server", named(req))
	}
	if strings.Contains(mediaType(resp), "yaml") {
		return errYAML
	}
	return nil
}

func mediaType(resp *http.Response) string {
	header := resp.Header.Get("Content-Type")
	if found, _, err := mime.ParseMediaType(header); err == nil {
		return found
	}
	return strings.ToLower(header)
}

// bounded returns the body of a response, which fails when it exceeds a limit.
func (in *intake) bounded(req *http.Request, resp *http.Response, cancel context.CancelFunc) *body {
	b := &body{ReadCloser: resp.Body, in: in, req: req, cancel: cancel, what: "the response to", part: &part{share: in.share}}
	failed := resp.StatusCode >= 300
	b.watches = isWatch(req) && !failed
	path := strings.TrimPrefix(req.URL.Path, in.root)
	b.discovery = !failed && isDiscovery(path)
	media := mediaType(resp)
	switch {
	case strings.Contains(media, "json"):
		b.weigher, b.mostBytes, b.mostWeight = &jsonWeigher{}, in.limits.body, in.limits.bodyWeight
	case strings.HasPrefix(media, "text/"):
		b.weigher, b.mostBytes, b.mostWeight = &textWeigher{}, in.limits.body, in.limits.bodyWeight
	default: // what has no type is decoded as what was asked for
		b.weigher, b.mostBytes, b.mostWeight = &protobufWeigher{framed: b.watches}, in.limits.protobuf, in.limits.frameWeight
	}
	switch {
	case b.watches:
		b.what = "an event of"
		b.mostBytes, b.mostWeight = min(b.mostBytes, in.limits.frame), in.limits.frameWeight
	case failed:
		b.mostBytes = min(b.mostBytes, in.limits.errorBody)
	case b.discovery:
		b.mostBytes, b.mostWeight = min(b.mostBytes, in.limits.discovery), in.limits.discoveryWeight
		if strings.Trim(path, "/") == "apis" && !strings.Contains(resp.Header.Get("Content-Type"), "apidiscovery") {
			b.mostWeight = in.limits.groupsWeight
		}
	case isOne(req, path):
		b.mostBytes, b.mostWeight = min(b.mostBytes, in.limits.object), min(b.mostWeight, in.limits.objectWeight)
	}
	return b
}

// discover takes note of the weight of a document of discovery so far. It reports whether all of them
// together exceed the limit.
func (in *intake) discover(path string, weight int64) (exceeds bool) {
	in.mu.Lock()
	if in.ended {
		in.mu.Unlock()
		return false
	}
	change := weight - in.discovered[path]
	in.discovered[path] = weight
	in.total += change
	exceeds = in.total > in.limits.discoveryWeight
	in.mu.Unlock()
	in.kept.add(change)
	return exceeds
}

// forget takes note that what was discovered is garbage, and if nothing will be any more.
func (in *intake) forget(ended bool) {
	in.mu.Lock()
	total := in.total
	in.total, in.ended = 0, in.ended || ended
	clear(in.discovered)
	in.mu.Unlock()
	in.kept.add(-total)
}

// paceStep is how much weight is taken in between two waits for the rate limiter.
const paceStep = 256 << 10

// maxRead is how much is read before it is weighed.
const maxRead = 32 << 10

// body is the body of a response. It bounds each document in it: the events of a watch, and otherwise
// all of it.
type body struct {
	io.ReadCloser
	weigher
	in     *intake
	req    *http.Request
	cancel context.CancelFunc
	part   *part

	what                  string
	watches, discovery    bool
	mostBytes, mostWeight int64
	held                  string // what it is added to of the tally; empty if it does not count

	paced, due int64 // weight of the present document that the pace knows of; what it does not know yet
	failed     error
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	bytes, _ := b.size()
	if late := b.part.await(b.req.Context(), bytes); late != nil {
		b.failed = late
		return 0, late
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), maxRead)])
	if exceeded := b.judge(p[:n]); exceeded != nil {
		b.failed = exceeded
		b.in.over(exceeded)
		return 0, exceeded
	}
	if b.due >= paceStep {
		if late := b.in.pace.WaitN(b.req.Context(), int(min(b.due, b.in.limits.bodyWeight))); late != nil {
			b.failed = late
			return 0, late
		}
		b.due = 0
	}
	return n, err
}

// judge weighs what was read, and returns an error if it exceeds a limit.
func (b *body) judge(p []byte) error {
	for len(p) > 0 {
		n, ended := b.weigh(p)
		p = p[n:]
		bytes, weight := b.size()
		b.due += weight - b.paced
		b.part.add(weight - b.paced)
		holds := b.in.tally.add(b.held, weight-b.paced)
		b.paced = weight
		switch {
		case holds:
			return tooMuch(b.req, "the decoded size of what is held of the cluster, with "+b.what, b.in.limits.held)
		case bytes > b.mostBytes:
			return tooMuch(b.req, b.what, b.mostBytes)
		case weight > b.mostWeight:
			return tooMuch(b.req, "the decoded size of "+b.what, b.mostWeight)
		case b.discovery && b.in.discover(b.req.URL.Path, weight):
			return tooMuch(b.req, "the decoded size of all discovery documents, with "+b.what, b.in.limits.discoveryWeight)
		}
		if ended && b.watches {
			b.part.end(false)
			b.reset()
			b.paced = 0
		}
	}
	return nil
}

// Close implements io.Closer.
func (b *body) Close() error {
	defer b.part.end(true)
	defer b.cancel()
	return b.ReadCloser.Close()
}
