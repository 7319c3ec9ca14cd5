package git_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/git"
)

// P13: what the mirror holds, also from an earlier process, is there without the server; what it
// does not hold is not waited for.
func TestCached_neverContactsTheServer(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "one"})
	dir := t.TempDir()
	earlier := newStoreIn(t, dir)
	first := openRef(t, earlier, o.https(s), git.Ref{Branch: "main"})
	rev := first.Revision()
	first.Close()
	require.NoError(t, earlier.Close())
	second := git.Revision{Ref: "main", Commit: o.push(t, map[string]string{"a.txt": "two"})}
	listings, fetches := s.listings.Load(), s.fetches.Load()

	store := newStoreIn(t, dir)
	tree, err := store.Cached(o.https(s), rev)
	require.NoError(t, err)
	defer tree.Close()
	assert.Equal(t, "one", readFile(t, tree, "a.txt"))
	_, err = store.Cached(o.https(s), second)
	require.ErrorIs(t, err, git.ErrAbsent)
	other := o.https(s)
	other.URL += "/other"
	_, err = store.Cached(other, rev)
	require.ErrorIs(t, err, git.ErrAbsent, "another repository has a mirror of its own")
	assert.Equal(t, listings, s.listings.Load())
	assert.Equal(t, fetches, s.fetches.Load())
}

func TestParseRevision(t *testing.T) {
	const commit = "5b3c0f7d5f0f4f6d0d3c9a0b6b1e7a0c2f1d9e84"
	for _, rev := range []git.Revision{{Ref: "main", Commit: commit}, {Commit: commit}, {Ref: "feature/x@sha1:y", Commit: commit}} {
		parsed, ok := git.ParseRevision(rev.String())
		assert.True(t, ok, rev)
		assert.Equal(t, rev, parsed)
	}
	for _, text := range []string{"", "main", "main@sha1:", "main@sha1:5b3c", "sha1:" + commit + "0", "mainsha1:" + commit, "@sha1:" + commit} {
		_, ok := git.ParseRevision(text)
		assert.False(t, ok, text)
	}
}
