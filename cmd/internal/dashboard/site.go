package dashboard

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// site is where browsers find a dashboard in the hub.
type site struct{ url *url.URL }

func newSite(address string) (site, error) {
	u, err := url.Parse(address)
	if err != nil {
		return site{}, fmt.Errorf("parse the address: %w", err)
	}
	if u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return site{}, fmt.Errorf("%q is not an address like https://waybill.example.com: no other scheme, no path", address)
	}
	return site{url: &url.URL{Scheme: u.Scheme, Host: u.Host}}, nil
}

// host reports whether a host and port are those of the address. Those of another name that was made to lead here are not.
func (s site) host(named string) bool {
	return strings.EqualFold(withPort(named), withPort(s.url.Host))
}

func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), "443")
}

// wantsPage reports whether a request is of a person who opens a page, and can be sent elsewhere; those of scripts and
// streams cannot.
func wantsPage(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// maxReturn bounds the address that users come back to after they have signed in.
const maxReturn = 2000

// returnTo returns the path and query of a request, which are of this site; the first page if they are too long for a cookie.
func returnTo(r *http.Request) string {
	back := (&url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}).String()
	if len(back) > maxReturn || !localPath(back) {
		return "/"
	}
	return back
}

// localPath reports whether an address leads nowhere else: browsers take two slashes, and a backslash for one, as the
// beginning of a host.
func localPath(address string) bool {
	return strings.HasPrefix(address, "/") && !strings.HasPrefix(address, "//") && !strings.Contains(address, `\`)
}
