package git

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"waybill.dev/waybill/sync/source/address"
)

// dialer opens conversations with one repository. It keeps what can be reused between them: parsed
// keys, connections.
type dialer interface {
	// dial returns a session that lasts at most as long as ctx.
	dial(ctx context.Context, w wanted) (session, error)
	// close drops idle connections.
	close()
}

// session is one conversation in git's upload-pack protocol, version 0.
type session interface {
	// AdvertisedReferencesContext returns the references of the server that are wanted.
	AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error)
	// UploadPack asks for a pack and returns the answer up to the pack's first byte. It may be
	// called at most once, after AdvertisedReferencesContext.
	UploadPack(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error)
	io.Closer
}

// newDialer prepares conversations with a repository, where g allows it. dir is a writable
// directory for short-lived files.
func newDialer(r *remote, l Limits, g address.Guard, dir string) (dialer, error) {
	if r.endpoint.Protocol == "ssh" {
		return newSSHDialer(r, l, g, dir)
	}
	return newHTTPDialer(r, l, g)
}

// advertised opens a session and returns the references of the server that are wanted. The caller
// closes the session.
func advertised(ctx context.Context, d dialer, w wanted) (session, *packp.AdvRefs, error) {
	s, err := d.dial(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	adv, err := s.AdvertisedReferencesContext(ctx)
	if err != nil {
		_ = s.Close()
		return nil, nil, err
	}
	return s, adv, nil
}

// refusal turns the words of a server, on stderr or in an error packet, into an error that can be
// classified. The phrases are those of GitHub, GitLab, Bitbucket, Gitea and git itself.
func refusal(said string) error {
	said = oneLine(said)
	lower := strings.ToLower(said)
	for _, phrase := range []string{
		"not found", "could not be found", "does not exist", "no such repository", "does not appear to be a git repository",
	} {
		if strings.Contains(lower, phrase) {
			return fmt.Errorf("%w: the server says: %s", transport.ErrRepositoryNotFound, said)
		}
	}
	for _, phrase := range []string{"access denied", "permission denied", "not authorized", "unauthorized"} {
		if strings.Contains(lower, phrase) {
			return fmt.Errorf("%w: the server says: %s", transport.ErrAuthorizationFailed, said)
		}
	}
	return fmt.Errorf("the server says: %s", said)
}
