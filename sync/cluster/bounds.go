package cluster

import (
	"context"
	"io"
	"math"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
)

// Bounds bound what the API servers of clusters that are not engaged send to this process: each response and event, and all
// that are received at once. Redirects are not followed. It is for clients that keep nothing of what they read. It is safe
// for concurrent use.
type Bounds struct{ options Options }

// NewBounds returns bounds for a process of which about a quarter of a gigabyte may be taken by what is being received.
func NewBounds() *Bounds {
	l := defaultLimits()
	l.body, l.bodyWeight, l.frame, l.frameWeight = l.body/2, l.bodyWeight/4, l.frame/4, l.frameWeight/4
	return &Bounds{Options{limits: l, underWay: newPool(maxAllUnderWay/2, "the decoded size of all answers under way, most of them of this cluster,")}}
}

// Bound returns the configuration of an API server with what that sends bounded. A server that exceeds a limit is not asked
// any more by clients of the configuration that is returned; LimitError says why.
func (b *Bounds) Bound(config *rest.Config) (*rest.Config, error) {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(base http.RoundTripper) http.RoundTripper {
		t := &boundTransport{base: base}
		t.ctx, t.cut = context.WithCancelCause(context.Background())
		o := b.options
		o.kept = newKept(math.MaxInt64) // nothing is kept, and discovery has a limit of its own
		t.intake = newIntake(base, strings.TrimSuffix(server.Path, "/"), o, func(err error) { t.cut(err) })
		return t
	})
	return config, nil
}

// boundTransport is an intake that ends with the first limit that is exceeded.
type boundTransport struct {
	base   http.RoundTripper
	intake *intake
	ctx    context.Context // ends with the limit that was exceeded
	cut    context.CancelCauseFunc
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
	resp.Body = endedBody{resp.Body, end}
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
}

// Close implements io.Closer.
func (b endedBody) Close() error {
	defer b.end()
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
