package release

import (
	"context"
	"io"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// settleTime is the time left to record how an action ended after its context has ended.
const settleTime = 10 * time.Second

// bound returns config with every request bound to ctx. Helm's actions and its storage do not use
// contexts; this way their requests end, and no new ones begin, when ctx ends. Connections stay
// shared.
func bound(ctx context.Context, config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &boundTransport{ctx: ctx, next: next} })
	return config
}

type boundTransport struct {
	ctx  context.Context
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *boundTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := context.Cause(t.ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	stop := context.AfterFunc(t.ctx, func() { cancel(context.Cause(t.ctx)) })
	release := func() {
		stop()
		cancel(context.Canceled)
	}
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		if cause := context.Cause(t.ctx); cause != nil {
			err = cause
		}
		release()
		return nil, err
	}
	resp.Body = &boundBody{ReadCloser: resp.Body, release: release}
	return resp, nil
}

// boundBody releases the context of its request when it is closed.
type boundBody struct {
	io.ReadCloser
	release func()
}

// Close implements io.Closer.
func (b *boundBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// settling returns a context that outlives ctx by settleTime, so that how an action ended can be
// recorded.
func settling(ctx context.Context) (context.Context, context.CancelFunc) {
	settled, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(settleTime, cancel)
		context.AfterFunc(settled, func() { timer.Stop() })
	})
	return settled, func() { stop(); cancel() }
}
