package git_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"waybill.dev/waybill/sync/source/git"
)

// babble says, in place of a pack, that the history is cut off at one commit after the other. It ends
// after far more than the limit, or when w does not take it.
func babble(w io.Writer) error {
	lines := []byte(strings.Repeat("0035shallow "+strings.Repeat("a", 40)+"\n", 1000))
	for range 1000 {
		if _, err := w.Write(lines); err != nil {
			return err
		}
	}
	_, err := w.Write([]byte("0000"))
	return err
}

func TestOpen_serverThatNeverComesToThePackOverHTTPS(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "x"})
	s.interfere(func(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
		if !strings.HasSuffix(r.URL.Path, "/git-upload-pack") {
			return w
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			_ = babble(w)
			return nil
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_ = babble(z)
		_ = z.Close()
		return nil
	})
	asked := make(chan string, 10)
	_, err := newStore(t).Open(t.Context(), o.https(s), head(t, o))
	require.ErrorIs(t, err, git.ErrLimit)
	assert.ErrorContains(t, err, "limit NegotiationBytes is 4194304")

	s.interfere(func(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
		asked <- r.Header.Get("Accept-Encoding")
		return w
	})
	openRef(t, newStore(t), o.https(s), git.Ref{})
	close(asked)
	for encoding := range asked {
		assert.NotContains(t, encoding, "gzip", "what is small on the wire would be large here")
	}
}

func TestOpen_serverThatNeverComesToThePackOverSSH(t *testing.T) {
	o := newHTTPS(t).newOrigin(t, map[string]string{"a.txt": "x"})
	user, host := newKey(t), newKey(t)
	address := serveBabble(t, host, []byte(runGit(t, "", "upload-pack", "--advertise-refs", o.bare)))
	repo := git.Repository{URL: "ssh://git@" + address + "/x.git", Credentials: git.Credentials{
		Identity: user.private, KnownHosts: knownHosts(address, host.public),
	}}

	_, err := newStore(t).Open(t.Context(), repo, head(t, o))

	require.ErrorIs(t, err, git.ErrLimit)
	assert.ErrorContains(t, err, "limit NegotiationBytes is 4194304")
}

func head(t *testing.T, o *origin) git.Revision {
	t.Helper()
	return git.Revision{Ref: "main", Commit: o.git(t, "rev-parse", "HEAD")}
}

// serveBabble serves one ssh connection: the list of references, and no pack.
func serveBabble(t *testing.T, host key, references []byte) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil },
	}
	config.AddHostKey(host.signer)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, channels, requests, err := ssh.NewServerConn(conn, config)
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests)
		for offered := range channels {
			channel, requests, err := offered.Accept()
			if err != nil {
				return
			}
			go func() {
				for r := range requests {
					_ = r.Reply(r.Type == "exec", nil)
				}
			}()
			if _, err := io.Copy(channel, bytes.NewReader(references)); err == nil {
				_ = babble(channel)
			}
			_ = channel.Close()
		}
	}()
	return listener.Addr().String()
}
