package git_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/address"
	"waybill.dev/waybill/sync/source/git"
)

// A user who writes a URL reaches nothing that answers only this machine.
func TestResolve_refusesLocalServers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	accepted := make(chan struct{}, 10)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			accepted <- struct{}{}
			_ = conn.Close()
		}
	}()
	host := listener.Addr().String()
	k := newKey(t)
	cases := map[string]git.Repository{
		"http":  {URL: "http://" + host + "/a.git"},
		"https": {URL: "https://" + host + "/a.git"},
		"ssh": {URL: "ssh://git@" + host + "/a.git", Credentials: git.Credentials{
			Identity: k.private, KnownHosts: knownHosts(host, k.public),
		}},
	}
	for name, repo := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := newStore(t, git.WithGuard(address.Guard{Refuse: true})).Resolve(t.Context(), repo, git.Ref{Branch: "main"})
			require.ErrorIs(t, err, git.ErrUnreachable, "what a name resolves to may change")
			assert.ErrorContains(t, err, "127.0.0.1 is a loopback address: sources may not be there unless waybill-sync runs with --allow-local-sources")
			assert.Empty(t, accepted)
			_, err = newStore(t).Resolve(t.Context(), repo, git.Ref{Branch: "main"})
			require.Error(t, err)
			<-accepted
			for len(accepted) > 0 {
				<-accepted
			}
		})
	}
}
