package address

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"
	"golang.org/x/net/proxy"
)

// Flag is the flag that allows sources everywhere.
const Flag = "--allow-local-sources"

// RefusedError means that a source is at an address where sources may not be.
type RefusedError struct {
	host string
	ip   netip.Addr
	kind kind
}

// Error says which address it is, and what would allow it.
func (e *RefusedError) Error() string {
	what := e.ip.String()
	if e.host != "" && e.host != what {
		what = e.host + " resolves to " + what + ", which"
	}
	return fmt.Sprintf("%s is %s: sources may not be there unless waybill-sync runs with %s", what, e.kind, Flag)
}

// Guard connects to sources. The zero value connects to any address.
type Guard struct {
	// Refuse refuses addresses that lead to this machine, its link or its cloud provider's metadata. It
	// is the address that a name resolves to that counts, at the time of the connection. Private
	// addresses are allowed, since git servers and registries have them.
	Refuse bool
	// Timeout bounds a connection; 0 leaves that to the context.
	Timeout time.Duration
	// Offline refuses every connection, before any name is resolved.
	Offline bool
}

// OfflineError says that a source was not connected to because the guard is offline.
type OfflineError struct{ address string }

// Error names the address.
func (e *OfflineError) Error() string { return "offline: not connected to " + e.address }

// DialContext connects to an address, directly. The proxies that the environment names are where the
// operator says they are, and are not refused.
func (g Guard) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if g.Offline {
		return nil, &OfflineError{address}
	}
	d := &net.Dialer{Timeout: g.Timeout}
	if !g.Refuse || isProxy(address) {
		return d.DialContext(ctx, network, address)
	}
	d.Control = func(_, resolved string, _ syscall.RawConn) error { return check(resolved) }
	conn, err := d.DialContext(ctx, network, address)
	var refused *RefusedError
	if errors.As(err, &refused) {
		host, _, _ := net.SplitHostPort(address)
		return nil, &RefusedError{host: host, ip: refused.ip, kind: refused.kind}
	}
	return conn, err
}

// Dial implements proxy.Dialer.
func (g Guard) Dial(network, address string) (net.Conn, error) {
	return g.DialContext(context.Background(), network, address)
}

// check returns an error if sources may not be at host:port, whose host is an IP address.
func check(resolved string) error {
	at, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", resolved, err)
	}
	if k := kindOf(at.Addr()); k != allowed {
		return &RefusedError{ip: at.Addr().Unmap(), kind: k}
	}
	return nil
}

// checkHost returns an error if host is, without being resolved, where sources may not be. It is all
// that can be known of what a proxy connects to.
func (g Guard) checkHost(host string) error {
	if !g.Refuse {
		return nil
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if name := strings.TrimSuffix(strings.ToLower(host), "."); name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return &RefusedError{host: host, ip: netip.IPv6Loopback(), kind: loopback}
	}
	if err != nil {
		return nil
	}
	if k := kindOf(ip); k != allowed {
		return &RefusedError{ip: ip.Unmap(), kind: k}
	}
	return nil
}

// Proxy returns the proxy of the environment for a request, for an http.Transport.
func (g Guard) Proxy(req *http.Request) (*url.URL, error) {
	by, err := http.ProxyFromEnvironment(req)
	if err != nil || by == nil {
		return by, err
	}
	return by, g.checkHost(req.URL.Hostname())
}

// DialProxied connects to an address by the proxy of the environment, if there is one (ALL_PROXY).
func (g Guard) DialProxied(ctx context.Context, network, address string) (net.Conn, error) {
	by := proxy.FromEnvironmentUsing(g)
	if _, direct := by.(Guard); !direct {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if err := g.checkHost(host); err != nil {
			return nil, err
		}
	}
	if d, ok := by.(proxy.ContextDialer); ok {
		return d.DialContext(ctx, network, address)
	}
	return by.Dial(network, address)
}

// isProxy reports whether the environment names a proxy at an address.
func isProxy(address string) bool {
	env := httpproxy.FromEnvironment()
	for _, raw := range []string{env.HTTPProxy, env.HTTPSProxy, allProxy()} {
		if raw == "" {
			continue
		}
		if !strings.Contains(raw, "://") {
			raw = "http://" + raw
		}
		if u, err := url.Parse(raw); err == nil && net.JoinHostPort(u.Hostname(), portOf(u)) == address {
			return true
		}
	}
	return false
}

// allProxy returns the proxy of connections that are not http.
func allProxy() string { return cmp.Or(os.Getenv("ALL_PROXY"), os.Getenv("all_proxy")) }

// portOf returns the port of a proxy, as net/http completes it.
func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	switch u.Scheme {
	case "https":
		return "443"
	case "socks5", "socks5h":
		return "1080"
	}
	return "80"
}
