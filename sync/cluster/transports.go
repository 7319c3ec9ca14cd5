package cluster

import (
	"net/http"
	"sync/atomic"
)

// transports sends requests over the connections of one transport, until that is replaced by another.
type transports struct {
	build   func() *http.Transport
	current atomic.Pointer[http.Transport]
}

func newTransports(build func() *http.Transport) *transports {
	t := &transports{build: build}
	t.current.Store(build())
	return t
}

// RoundTrip implements http.RoundTripper.
func (t *transports) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.current.Load().RoundTrip(req)
}

// replace has later requests sent by another transport, a new one if it is nil, and returns the one
// that sent them so far. The connections of that close once they have been idle for a while.
func (t *transports) replace(by *http.Transport) *http.Transport {
	if by == nil {
		by = t.build()
	}
	return t.current.Swap(by)
}

// CloseIdleConnections closes those of the present transport.
func (t *transports) CloseIdleConnections() { t.current.Load().CloseIdleConnections() }
