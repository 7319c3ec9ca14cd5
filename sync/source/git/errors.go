package git

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh/knownhosts"

	"waybill.dev/waybill/sync/excerpt"
	"waybill.dev/waybill/sync/source/webpage"
)

// Kinds of errors, for errors.Is. Every error of this package that concerns the repository, and not
// the local disk, wraps one of these. Its message says what to do and holds no credentials.
var (
	// ErrInvalid: the URL, the reference or the credentials cannot be used as they are. Retrying
	// without a change is pointless.
	ErrInvalid = errors.New("invalid git source")
	// ErrAuthentication: the server refused the credentials, or requires some.
	ErrAuthentication = errors.New("authentication failed")
	// ErrRepositoryNotFound: the server has no such repository, or hides it from these credentials.
	ErrRepositoryNotFound = errors.New("repository not found")
	// ErrRefNotFound: the repository has no such branch, tag, reference or commit, or does not
	// serve the commit.
	ErrRefNotFound = errors.New("reference not found")
	// ErrUnreachable: the server did not answer, or not in time, or the answer was broken. Retrying
	// later makes sense.
	ErrUnreachable = errors.New("git server unreachable")
	// ErrHostKey: known_hosts does not list the key that the ssh server presents.
	ErrHostKey = errors.New("ssh host key not trusted")
	// ErrTLS: the certificate of the https server is not trusted.
	ErrTLS = errors.New("TLS certificate not trusted")
	// ErrLimit: one of Limits was hit; the message names it. errors.Is also matches fs.ErrInvalid.
	ErrLimit error = contentError("limit exceeded")
	// ErrOutside: a path or a symbolic link leads out of the repository. errors.Is also matches
	// fs.ErrInvalid.
	ErrOutside error = contentError("path leads out of the repository")
	// ErrMalformed: the commit cannot be read as the server sends it: a directory in it is no directory,
	// or the server leaves parts of it out. errors.Is also matches fs.ErrInvalid.
	ErrMalformed error = contentError("malformed commit")
	// ErrAbsent: the local mirror does not hold the commit. Only Cached returns it; Open fetches.
	ErrAbsent = errors.New("commit is not in the local mirror")
	// ErrCorrupt: the local mirror is damaged. The next Open replaces it.
	ErrCorrupt = errors.New("local mirror damaged")
	// errPanic: a fault of this program, or of a library.
	errPanic = errors.New("internal error")
)

// contentError is a fault in the content of the repository: reading it again gives the same error.
// Callers that read a Tree like any other file system recognise it by fs.ErrInvalid.
type contentError string

func (e contentError) Error() string { return string(e) }

func (e contentError) Is(target error) bool { return target == fs.ErrInvalid }

// classify turns a transport error into one of the errors above. what describes, with the scrubbed
// URL, the operation that failed.
func (r *remote) classify(what string, err error) error {
	hint, kind := r.diagnose(err)
	if kind == nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	msg := kind.Error()
	if hint != "" {
		msg += ": " + hint
	}
	return &sourceError{msg: r.scrub(what + ": " + msg), kind: kind, cause: cause(err)}
}

// sourceError separates the scrubbed message from the chain that errors.Is walks, so that no
// wrapped message can bring credentials back.
type sourceError struct {
	msg   string
	kind  error
	cause error
}

func (e *sourceError) Error() string { return e.msg }

func (e *sourceError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.kind}
	}
	return []error{e.kind, e.cause}
}

// cause keeps context errors visible to errors.Is, and nothing else.
func cause(err error) error {
	for _, known := range []error{context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, known) {
			return known
		}
	}
	return nil
}

// diagnose returns the kind of err and a sentence for the user. A nil kind means that err already
// carries one, or has nothing to do with the server.
func (r *remote) diagnose(err error) (hint string, kind error) {
	if ownKind(err) != nil || isLocal(err) {
		return "", nil
	}
	if hint, kind := diagnoseTrust(err); kind != nil {
		return hint, kind
	}
	switch {
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed),
		strings.Contains(err.Error(), "ssh: unable to authenticate"):
		return r.authenticationHint(), ErrAuthentication
	case errors.Is(err, webpage.Err):
		return webpage.Err.Error() + " instead of a git repository: if a login is needed, set secretRef, and check the URL", ErrAuthentication
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return "check the URL, and that the credentials may read the repository", ErrRepositoryNotFound
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return "the repository is empty; push a commit", ErrRefNotFound
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return "no answer in time; check that the server can be reached from here, or raise the timeout", ErrUnreachable
	case errors.Is(err, context.Canceled):
		return "the attempt was cancelled", ErrUnreachable
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed the connection", ErrUnreachable
	default:
		return detail(err), ErrUnreachable
	}
}

// detail returns the text of err without the URL, which the message has already.
func detail(err error) string {
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	return oneLine(err.Error())
}

// diagnoseTrust recognises errors about servers that are not trusted.
func diagnoseTrust(err error) (hint string, kind error) {
	var (
		verify  *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
		key     *knownhosts.KeyError
		revoked *knownhosts.RevokedError
	)
	switch {
	case errors.As(err, &key) && len(key.Want) == 0:
		return "known_hosts has no key for this host; add the output of ssh-keyscan once you have checked it", ErrHostKey
	case errors.As(err, &key):
		return "the server shows another key than known_hosts has; find out why before you change known_hosts", ErrHostKey
	case errors.As(err, &revoked):
		return "known_hosts marks the key of the server as revoked", ErrHostKey
	case errors.As(err, &unknown):
		return "signed by an unknown authority; put the authority's certificate into key ca.crt of the Secret", ErrTLS
	case errors.As(err, &verify):
		return oneLine(verify.Err.Error()), ErrTLS
	}
	return "", nil
}

// ownKind returns the sentinel that err wraps already, or nil.
func ownKind(err error) error {
	for _, kind := range []error{
		ErrInvalid, ErrAuthentication, ErrRepositoryNotFound, ErrRefNotFound, ErrUnreachable,
		ErrHostKey, ErrTLS, ErrLimit, ErrOutside, ErrMalformed, ErrCorrupt, errPanic,
	} {
		if errors.Is(err, kind) {
			return kind
		}
	}
	return nil
}

// isLocal reports whether err is an error of the local disk.
func isLocal(err error) bool {
	var file *fs.PathError
	var link *os.LinkError
	return errors.As(err, &file) || errors.As(err, &link)
}

// isMomentary reports whether err says nothing of what is on the local disk, only that it could not
// be read just now.
func isMomentary(err error) bool {
	for _, known := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// oneLine shortens the server's words to something that fits a condition.
func oneLine(s string) string {
	const most = 300
	return excerpt.Of(strings.Join(strings.Fields(s), " "), most)
}
