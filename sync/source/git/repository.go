package git

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"
)

// Repository is the address of a git repository and the credentials for it.
type Repository struct {
	// URL is https://host/path, http://host/path (only without credentials),
	// ssh://[user@]host[:port]/path or [user@]host:path. The ssh user is git unless the URL says
	// otherwise. A password in it is rejected.
	URL string
	// Credentials authenticate; they are required for ssh.
	Credentials Credentials
}

// remote is a Repository that has been checked.
type remote struct {
	endpoint    transport.Endpoint
	credentials Credentials
	// url is the URL without user and password, for messages.
	url string
}

// parse checks the URL and that the credentials suit it. All its errors are ErrInvalid.
func (r Repository) parse() (*remote, error) {
	endpoint, err := transport.NewEndpoint(strings.TrimSpace(r.URL))
	if err != nil {
		return nil, fmt.Errorf("%w: the URL does not parse; use https://host/path or ssh://git@host/path", ErrInvalid)
	}
	out := &remote{endpoint: *endpoint, credentials: r.Credentials}
	out.endpoint.User, out.endpoint.Password = "", ""
	out.url = out.endpoint.String()
	if endpoint.Password != "" {
		return nil, fmt.Errorf("%w: %s: the URL holds a password; move it into a Secret", ErrInvalid, out.url)
	}
	if endpoint.Protocol != "file" && (endpoint.Host == "" || strings.Trim(endpoint.Path, "/") == "") {
		return nil, fmt.Errorf("%w: %s: the URL lacks host or path", ErrInvalid, out.url)
	}
	switch endpoint.Protocol {
	case "https", "http":
		return out, out.checkHTTP(endpoint.User)
	case "ssh":
		out.endpoint.User = endpoint.User
		if out.endpoint.User == "" {
			out.endpoint.User = "git"
		}
		return out, out.checkSSH()
	case "file":
		return nil, fmt.Errorf("%w: the URL is a local path; use https, http, ssh or git@host:path", ErrInvalid)
	default:
		return nil, fmt.Errorf("%w: %s: scheme %q is not supported; use https, http, ssh or git@host:path",
			ErrInvalid, out.url, endpoint.Protocol)
	}
}

func (r *remote) checkHTTP(user string) error {
	c := r.credentials
	switch {
	case user != "":
		return fmt.Errorf("%w: %s: the URL holds a user name; move it into a Secret", ErrInvalid, r.url)
	case r.endpoint.Protocol == "http" && c.sendsSecret():
		return fmt.Errorf("%w: %s: credentials would travel unencrypted; use https", ErrInvalid, r.url)
	case len(c.Identity) > 0 && !c.sendsSecret():
		return fmt.Errorf("%w: %s: the Secret holds an ssh key; use an ssh URL, or username and password", ErrInvalid, r.url)
	}
	return nil
}

func (r *remote) checkSSH() error {
	c := r.credentials
	switch {
	case len(c.Identity) == 0:
		return fmt.Errorf("%w: %s: ssh needs a Secret with %s and %s", ErrInvalid, r.url, keyIdentity, keyKnownHosts)
	case len(c.KnownHosts) == 0:
		return fmt.Errorf("%w: %s: ssh needs %s in the Secret; add the output of ssh-keyscan once you have checked it",
			ErrInvalid, r.url, keyKnownHosts)
	}
	return nil
}

// address returns host:port.
func (r *remote) address() string {
	host := strings.Trim(r.endpoint.Host, "[]")
	port := r.endpoint.Port
	if port == 0 {
		port = map[string]int{"https": 443, "http": 80, "ssh": 22}[r.endpoint.Protocol]
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// key names the mirror: one for each URL and content of the credentials. The limits that
// decide which objects a mirror holds are part of it too.
func (r *remote) key(l Limits) string {
	credentials := r.credentials.hash()
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s@%s\x00%x\x00%d", mirrorLayout, r.endpoint.User, r.url, credentials, l.FileBytes)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// scrub removes from a message what must not be shown.
func (r *remote) scrub(message string) string {
	for _, secret := range r.credentials.secrets() {
		message = strings.ReplaceAll(message, secret, redacted)
		message = strings.ReplaceAll(message, url.QueryEscape(secret), redacted)
	}
	return message
}

func (r *remote) authenticationHint() string {
	switch {
	case r.endpoint.Protocol == "ssh":
		return "the server does not take the ssh key; register its public half with the server, with read access"
	case r.credentials.sendsSecret():
		return "check user name and password or token in the Secret, and that they may read the repository"
	default:
		return "the server asks for credentials, or has no such repository; add a Secret, or check the URL"
	}
}
