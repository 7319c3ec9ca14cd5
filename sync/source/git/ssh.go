package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/source/address"
)

// sshDialer talks to one repository over ssh. It is our own because go-git's cannot be interrupted
// while it connects: a server that accepts and then says nothing would block us forever.
type sshDialer struct {
	address string
	command string
	config  ssh.ClientConfig
	limits  Limits
	guard   address.Guard
}

func newSSHDialer(r *remote, l Limits, g address.Guard, dir string) (*sshDialer, error) {
	signer, err := r.credentials.signer()
	if err != nil {
		return nil, err
	}
	hosts, err := parseKnownHosts(r.credentials.KnownHosts, dir)
	if err != nil {
		return nil, err
	}
	server := r.address()
	algorithms := hosts.HostKeyAlgorithms(server)
	if len(algorithms) == 0 {
		return nil, fmt.Errorf("%w: %s has no key for %s; add the output of ssh-keyscan once you have checked it",
			ErrHostKey, keyKnownHosts, server)
	}
	return &sshDialer{
		address: server,
		command: transport.UploadPackServiceName + " " + quote(r.endpoint.Path),
		config: ssh.ClientConfig{
			User:            r.endpoint.User,
			Auth:            []ssh.AuthMethod{ssh.PublicKeys(signer)},
			HostKeyCallback: hosts.HostKeyCallback(),
			// Asking for the key types that we know keeps the server from presenting another of its
			// keys.
			HostKeyAlgorithms: algorithms,
		},
		limits: l,
		guard:  g,
	}, nil
}

// parseKnownHosts goes through a file, since the library reads nothing else.
func parseKnownHosts(data []byte, dir string) (*knownhosts.HostKeyDB, error) {
	f, err := os.CreateTemp(dir, "known_hosts-*")
	if err != nil {
		return nil, fmt.Errorf("write known_hosts: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("write known_hosts: %w", err)
	}
	hosts, err := knownhosts.NewDB(f.Name())
	if err != nil {
		text := strings.ReplaceAll(err.Error(), f.Name(), keyKnownHosts)
		return nil, fmt.Errorf("%w: %s of the Secret does not parse: %s", ErrInvalid, keyKnownHosts, oneLine(text))
	}
	return hosts, nil
}

// quote makes s a single word for the remote shell.
func quote(s string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(s) + "'"
}

func (d *sshDialer) close() {}

func (d *sshDialer) dial(ctx context.Context, w wanted) (session, error) {
	conn, err := d.guard.DialProxied(ctx, "tcp", d.address)
	if err != nil {
		return nil, err
	}
	// Closing the connection makes every read and write below return when ctx ends.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	s := &sshSession{limits: d.limits, wanted: w, close: func() error { stop(); return conn.Close() }}
	if err := s.start(conn, d); err != nil {
		_ = s.close()
		return nil, contextFirst(ctx, err)
	}
	return s, nil
}

// maxStderr is how much is kept of what a server says is wrong.
const maxStderr = 4 << 10

// sshSession is one run of git-upload-pack on the server.
type sshSession struct {
	limits  Limits
	wanted  wanted
	close   func() error
	session *ssh.Session
	stdin   io.WriteCloser
	stdout  io.Reader
	// stderr has the first kilobytes.
	stderr *excerpt.Buffer
}

func (s *sshSession) start(conn net.Conn, d *sshDialer) error {
	c, channels, requests, err := ssh.NewClientConn(conn, d.address, &d.config)
	if err != nil {
		return err
	}
	session, err := ssh.NewClient(c, channels, requests).NewSession()
	if err != nil {
		return err
	}
	s.session = session
	if s.stdin, err = session.StdinPipe(); err != nil {
		return err
	}
	if s.stdout, err = session.StdoutPipe(); err != nil {
		return err
	}
	s.stderr = excerpt.NewHead(maxStderr)
	session.Stderr = s.stderr
	return session.Start(d.command)
}

// AdvertisedReferencesContext implements session.
func (s *sshSession) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	adv := packp.NewAdvRefs()
	err := adv.Decode(newListing(io.NopCloser(s.stdout), s.wanted, s.limits))
	if errors.Is(err, packp.ErrEmptyAdvRefs) || err == nil && adv.IsEmpty() {
		return nil, transport.ErrEmptyRemoteRepository
	}
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	transport.FilterUnsupportedCapabilities(adv.Capabilities)
	return adv, nil
}

// explain prefers what the server said to the decoding error.
func (s *sshSession) explain(ctx context.Context, err error) error {
	var said *pktline.ErrorLine
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &said):
		return refusal(said.Text)
	case errors.Is(err, packp.ErrEmptyInput), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		// The server has closed its output: its stderr is complete once the session has ended.
		_ = s.session.Wait()
		if text := s.stderr.String(); text != "" {
			return refusal(text)
		}
		return contextFirst(ctx, io.ErrUnexpectedEOF)
	default:
		return err
	}
}

// UploadPack implements session.
func (s *sshSession) UploadPack(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	if err := s.send(req); err != nil {
		return nil, s.explain(ctx, err)
	}
	res := packp.NewUploadPackResponse(req)
	answer := boundedAnswer(io.NopCloser(s.stdout), s.limits)
	if err := res.Decode(answer); err != nil {
		return nil, s.explain(ctx, answer.reason(err))
	}
	answer.lift()
	return res, nil
}

func (s *sshSession) send(req *packp.UploadPackRequest) error {
	if err := req.Validate(); err != nil {
		return err
	}
	if err := req.UploadRequest.Encode(s.stdin); err != nil {
		return err
	}
	if err := req.UploadHaves.Encode(s.stdin, true); err != nil {
		return err
	}
	if err := pktline.NewEncoder(s.stdin).EncodeString("done\n"); err != nil {
		return err
	}
	return s.stdin.Close()
}

// Close implements session. It does not wait for the server.
func (s *sshSession) Close() error {
	return s.close()
}

// contextFirst returns the error of ctx if it has ended: the error of a connection that was closed
// for that reason is useless.
func contextFirst(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
