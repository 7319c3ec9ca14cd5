package git_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/git"
)

// P13
func TestOpen_serverThatHangsInAFetchIsLeftInTime(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": noise(50_000)})
	hanging, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.interfere(func(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
		if strings.HasSuffix(r.URL.Path, "/git-upload-pack") {
			return &cutWriter{ResponseWriter: w, left: 20_000, over: func() {
				once.Do(func() { close(hanging) })
				<-release
			}}
		}
		return w
	})
	store := newStore(t)
	rev, err := store.Resolve(t.Context(), o.https(s), git.Ref{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-hanging
		cancel()
	}()

	_, err = store.Open(ctx, o.https(s), rev)
	require.ErrorIs(t, err, git.ErrUnreachable)
	require.ErrorIs(t, err, context.Canceled)

	close(release)
	s.interfere(nil)
	tree, err := store.Open(t.Context(), o.https(s), rev)
	require.NoError(t, err, "the next attempt is not held up by the one that was given up")
	defer tree.Close()
	assert.Equal(t, noise(50_000), readFile(t, tree, "a.txt"))
}
