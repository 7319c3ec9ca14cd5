package git_test

import (
	"io/fs"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/git"
)

// One who reads on while another closes the tree takes no mirror away.
func TestTree_readThatOutlivesIt(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "a"})
	store := newStore(t)
	first := openRef(t, store, o.https(s), git.Ref{Branch: "main"})
	rev := first.Revision()
	first.Close()
	require.ErrorIs(t, first.ReadOn(), fs.ErrClosed)
	for range 20 {
		tree, err := store.Cached(o.https(s), rev)
		require.NoError(t, err)
		var readers sync.WaitGroup
		for range 4 {
			readers.Go(func() {
				for range 20 {
					if err := tree.ReadOn(); err != nil {
						assert.ErrorIs(t, err, fs.ErrClosed)
						assert.NotErrorIs(t, err, git.ErrCorrupt)
					}
				}
			})
		}
		tree.Close()
		readers.Wait()
	}

	again, err := store.Cached(o.https(s), rev)
	require.NoError(t, err, "the mirror is as good as before")
	defer again.Close()
	assert.Equal(t, "a", readFile(t, again, "a.txt"))
}
