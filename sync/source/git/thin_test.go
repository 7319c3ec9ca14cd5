package git_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/git"
)

// lines returns a text in which one line can be changed.
func lines(changed int, to string) string {
	var b strings.Builder
	for i := range 500 {
		if i == changed {
			fmt.Fprintln(&b, to)
			continue
		}
		fmt.Fprintf(&b, "line %d of a file that changes little\n", i)
	}
	return b.String()
}

// C56
func TestOpen_receivesDifferencesToWhatItHas(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"big.txt": lines(-1, ""), "other.txt": "x"})
	dir := t.TempDir()
	store := newStoreIn(t, dir)
	openRef(t, store, o.https(s), git.Ref{Branch: "main"})
	for i := range 3 {
		want := lines(i*100, fmt.Sprintf("changed %d", i))
		o.push(t, map[string]string{"big.txt": want})

		tree := openRef(t, store, o.https(s), git.Ref{Branch: "main"})

		require.Equal(t, want, readFile(t, tree, "big.txt"))
		require.Equal(t, "x", readFile(t, tree, "other.txt"))
	}

	indexes, err := filepath.Glob(filepath.Join(dir, "*", "generation-1", "objects", "pack", "*.idx"))
	require.NoError(t, err)
	assert.Len(t, indexes, 4, "one pack for each fetch, all in the first generation")
	for _, index := range indexes {
		out := runGit(t, "", "verify-pack", "--verbose", index)
		assert.Contains(t, out, "ok", "git finds the packs whole")
	}
}
