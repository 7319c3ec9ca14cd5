package cluster

import (
	"context"
	"io"
	"math"
	"net/http"
	"runtime"
	"strings"

	"k8s.io/client-go/rest"
)

// Bounds bound what the API servers of clusters that are not engaged send to this process: each response and event, all
// that are received at once, and what clients may hold of it. Redirects are not followed. It is for clients that are made for a
// page or a stream, and garbage after that. It is safe for concurrent use.
type Bounds struct {
	options Options
	held    *pool // by all clients
}

// NewBounds returns bounds for a process of which about a quarter of a gigabyte may be taken by what is being received, and half
// of one by what is held. What one client holds is bounded by half of that.
func NewBounds() *Bounds {
	l := defaultLimits()
	l.body, l.bodyWeight, l.frame, l.frameWeight = l.body/2, l.bodyWeight/4, l.frame/4, l.frameWeight/4
	l.object, l.objectWeight, l.held = l.frame, l.frameWeight, maxAllHeld/2
	return &Bounds{
		Options{
			limits: l, underWay: newPool(maxAllUnderWay/2, "the decoded size of all answers under way, most of them of this cluster,"),
			kept: newKept(math.MaxInt64), // discovery has a limit of its own, and nothing else is kept
		},
		newPool(maxAllHeld, "the decoded size of what is held of all clusters, most of it of this one,"),
	}
}

// Bound returns the configuration of an API server with what that sends bounded. A server that exceeds a limit is not asked
// any more by clients of the configuration that is returned; LimitError says why. What these clients have received counts as
// held until it is replaced, they are garbage, or five minutes have passed.
func (b *Bounds) Bound(config *rest.Config) (*rest.Config, error) {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(base http.RoundTripper) http.RoundTripper {
		ctx, cut := context.WithCancelCause(context.Background())
		t := &boundTransport{base: base, ctx: ctx}
		over := func(err error) { cut(err) }
		t.intake = newIntake(base, strings.TrimSuffix(server.Path, "/"), b.options, over)
		t.intake.tally = newTally(b.options.limits.held, b.held.holder(over))
		runtime.AddCleanup(t, (*tally).end, t.intake.tally)
		return t
	})
	return config, nil
}

// boundTransport is an intake that ends with the first limit that is exceeded.
type boundTransport struct {
	base   http.RoundTripper
	intake *intake
	ctx    context.Context // ends with the limit that was exceeded
}

// RoundTrip implements http.RoundTripper.
func (t *boundTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.ctx.Err() != nil {
		return nil, context.Cause(t.ctx)
	}
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(t.ctx, cancel)
	end := func() {
		stop()
		cancel()
	}
	resp, err := t.send(req.WithContext(ctx))
	if err != nil {
		end()
		return nil, err
	}
	resp.Body = endedBody{resp.Body, end, t}
	return resp, nil
}

func (t *boundTransport) send(req *http.Request) (*http.Response, error) {
	if !isLog(req) {
		return t.intake.RoundTrip(req)
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if err := t.intake.check(req, resp); err != nil {
		_ = resp.Body.Close() // nothing was written
		return nil, err
	}
	if resp.StatusCode >= http.StatusBadRequest { // which is read as a whole
		resp.Body = cutBody{io.LimitReader(resp.Body, t.intake.limits.errorBody), resp.Body}
	}
	return resp, nil
}

// endedBody is a body that has its request forgotten when it is closed.
type endedBody struct {
	io.ReadCloser
	end func()
	by  *boundTransport // which is no garbage, and holds what was received, while the body is read
}

// Close implements io.Closer.
func (b endedBody) Close() error {
	defer b.end()
	defer runtime.KeepAlive(b.by)
	return b.ReadCloser.Close()
}

// cutBody is a body that ends early.
type cutBody struct {
	io.Reader
	io.Closer
}

// isLog reports whether a request reads the log of a container: a text of any length, which its reader bounds.
func isLog(req *http.Request) bool {
	return req.Method == http.MethodGet && strings.Contains(req.URL.Path, "/pods/") && strings.HasSuffix(req.URL.Path, "/log")
}
