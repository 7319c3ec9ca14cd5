package watch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What differs from try to try is left out: two tries that fail alike have the same words, and
// what the words say stays.
func TestStable(t *testing.T) {
	address := func(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port} }
	webhook := func(format string, args ...any) error {
		return apierrors.NewInternalError(fmt.Errorf(`failed calling webhook "a.example.com": `+format, args...))
	}
	for name, tc := range map[string]struct {
		err  func(try int) error
		want string
	}{
		"refused": {func(int) error {
			return &url.Error{Op: "Get", URL: "https://127.0.0.1:6443/api", Err: &net.OpError{Op: "dial", Net: "tcp", Addr: address(6443), Err: syscall.ECONNREFUSED}}
		}, "API server 127.0.0.1:6443: connection refused"},
		"reset": {func(try int) error {
			return &url.Error{Op: "Get", URL: fmt.Sprintf("https://a/api?resourceVersion=%d", try), Err: &net.OpError{Op: "read", Net: "tcp",
				Source: address(43000 + try), Addr: address(6443), Err: syscall.ECONNRESET}}
		}, "API server 127.0.0.1:6443: connection reset by peer"},
		"deadline": {func(try int) error {
			return &url.Error{Op: "Get", URL: fmt.Sprintf("https://a/%d", try), Err: context.DeadlineExceeded}
		}, "API server: no answer in time"},
		"stream": {func(try int) error {
			return &url.Error{Op: "Get", URL: "https://a", Err: fmt.Errorf("stream error: stream ID %d; INTERNAL_ERROR; received from peer", try)}
		}, "API server: stream error: INTERNAL_ERROR; received from peer"},
		"goaway": {func(try int) error {
			return fmt.Errorf("http2: server sent GOAWAY and closed the connection; LastStreamID=%d, ErrCode=NO_ERROR", try)
		}, "http2: server sent GOAWAY and closed the connection; ErrCode=NO_ERROR"},
		"webhook behind a port": {func(try int) error {
			return webhook("Post \"https://a.svc:443/v?timeout=10s\": read tcp 10.0.0.1:%d->10.0.0.2:443: read: connection reset by peer", 43000+try)
		}, `Internal error occurred: failed calling webhook "a.example.com": Post "https://a.svc:443/v?timeout=10s": read tcp 10.0.0.2:443: read: connection reset by peer`},
		"webhook with an expired certificate": {func(try int) error {
			return webhook("tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-11-21T10:00:%02dZ is after 2025-01-01T00:00:00Z", try)
		}, `Internal error occurred: failed calling webhook "a.example.com": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: it is after 2025-01-01T00:00:00Z`},
		"request id": {func(try int) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", fmt.Errorf("denied by policy (request id: 7c4f-%04d)", try))
		}, `pods "a" is forbidden: denied by policy`},
		"attempt": {func(try int) error {
			return apierrors.NewInternalError(fmt.Errorf("upstream failed, attempt %d of 9", try))
		}, "Internal error occurred: upstream failed"},
		"tries": {func(try int) error { return fmt.Errorf("giving up after %d attempts: no route", try) }, "giving up: no route"},
		"name that ends in a number": {func(int) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-try2", errors.New("denied"))
		}, `pods "web-try2" is forbidden: denied`},
		"plain": {func(int) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web-1", errors.New("exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2"))
		}, `pods "web-1" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2`},
	} {
		t.Run(name, func(t *testing.T) {
			first, second := Stable(tc.err(1)), Stable(fmt.Errorf("once more: %w", tc.err(2)))
			assert.Equal(t, tc.want, first.Error())
			assert.Contains(t, second.Error(), tc.want)
			assert.Equal(t, apierrors.ReasonForError(tc.err(1)), apierrors.ReasonForError(first), "what it wraps stays")
		})
	}
	require.NoError(t, Stable(nil))
}
