//go:build unix

package git_test

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/git"
)

// withoutFiles calls f while the process may open no further file.
func withoutFiles(t *testing.T, f func()) {
	t.Helper()
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 0
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	defer func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)) }()
	f()
}

// P13: a disk that cannot be read for a moment takes no mirror away.
func TestCached_diskThatFailsForAMoment(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "sound"})
	store := newStoreIn(t, t.TempDir())
	first := openRef(t, store, o.https(s), git.Ref{Branch: "main"})
	rev := first.Revision()
	first.Close()
	s.StopHTTP()

	withoutFiles(t, func() {
		_, err := store.Cached(o.https(s), rev)
		require.ErrorIs(t, err, syscall.EMFILE)
		assert.NotErrorIs(t, err, git.ErrAbsent)
	})
	tree, err := store.Cached(o.https(s), rev)
	require.NoError(t, err)
	defer tree.Close()
	assert.Equal(t, "sound", readFile(t, tree, "a.txt"))
}

// Readers go on after that, and so do all that share the packs.
func TestTree_diskThatFailsForAMoment(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "sound"})
	store := newStoreIn(t, t.TempDir())
	tree := openRef(t, store, o.https(s), git.Ref{Branch: "main"})
	fsys, err := tree.FS(".")
	require.NoError(t, err)

	tree.ForgetIndexes()
	withoutFiles(t, func() {
		_, err := fs.ReadFile(fsys, "a.txt")
		require.ErrorIs(t, err, syscall.EMFILE)
		assert.NotErrorIs(t, err, git.ErrCorrupt)
	})
	assert.Equal(t, "sound", readFile(t, tree, "a.txt"))
	s.StopHTTP()
	again, err := store.Cached(o.https(s), tree.Revision())
	require.NoError(t, err)
	again.Close()
}
