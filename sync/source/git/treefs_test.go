package git_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/git"
)

func TestTree_isAFileSystem(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{
		"a.txt": "a", "dir/b.txt": "b", "dir/sub/c.txt": "c", "dir-and-more": "sorts between dir and dir/", "big.txt": noise(100_000),
	})
	require.NoError(t, os.Symlink("dir/b.txt", filepath.Join(o.work, "link")))
	require.NoError(t, os.Chmod(filepath.Join(o.work, "a.txt"), 0o755))
	// A submodule is a commit of another repository; it is not there for us.
	o.git(t, "update-index", "--add", "--cacheinfo", "160000,"+o.git(t, "rev-parse", "HEAD")+",module")
	o.git(t, "add", "--all", "--", "a.txt", "link")
	o.git(t, "commit", "--quiet", "--message", "modes")
	o.git(t, "push", "--quiet", "origin", "HEAD")
	tree := openRef(t, newStore(t), o.https(s), git.Ref{})
	fsys, err := tree.FS(".")
	require.NoError(t, err)

	require.NoError(t, fstest.TestFS(fsys, "a.txt", "dir/b.txt", "dir/sub/c.txt", "dir-and-more", "big.txt", "link"))
	_, err = fs.Stat(fsys, "module")
	require.ErrorIs(t, err, fs.ErrNotExist)
	info, err := fs.Stat(fsys, "a.txt")
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o555), info.Mode())
	assert.EqualValues(t, 1, info.Size())
}

func TestTree_concurrentReaders(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": noise(5000), "dir/b.txt": noise(40_000)})
	store := newStore(t)
	rev := openRef(t, store, o.https(s), git.Ref{}).Revision()

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				tree, err := store.Open(t.Context(), o.https(s), rev)
				if !assert.NoError(t, err) {
					return
				}
				fsys, err := tree.FS(".")
				assert.NoError(t, err)
				for name, size := range map[string]int{"a.txt": 5000, "dir/b.txt": 40_000} {
					content, err := fs.ReadFile(fsys, name)
					assert.NoError(t, err)
					assert.Len(t, content, size)
				}
				tree.Close()
			}
		})
	}
	wg.Wait()
}

func TestTree_closed(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "a"})
	tree := openRef(t, newStore(t), o.https(s), git.Ref{})
	fsys, err := tree.FS(".")
	require.NoError(t, err)
	tree.Close()
	tree.Close()

	_, err = fs.ReadFile(fsys, "a.txt")
	assert.ErrorIs(t, err, fs.ErrClosed)
}
