package git_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"waybill.dev/waybill/sync/source/git"
)

// packOf packs just these objects, in which git looks for nothing.
func (o *origin) packOf(t *testing.T, objects ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "pack-objects", "--quiet", "--stdout")
	cmd.Dir, cmd.Stdin = o.work, strings.NewReader(strings.Join(objects, "\n")+"\n")
	pack, err := cmd.Output()
	require.NoError(t, err)
	return pack
}

// sendAsIs makes the server offer one commit and send that pack for it, whatever it holds.
func (s *server) sendAsIs(commit string, pack []byte) {
	line := func(w io.Writer, text string) { _, _ = fmt.Fprintf(w, "%04x%s", len(text)+4, text) }
	s.interfere(func(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			line(w, "# service=git-upload-pack\n")
			_, _ = io.WriteString(w, "0000")
			line(w, commit+" HEAD\x00shallow symref=HEAD:refs/heads/main\n")
			line(w, commit+" refs/heads/main\n")
			_, _ = io.WriteString(w, "0000")
			return nil
		}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		line(w, "shallow "+commit+"\n")
		_, _ = io.WriteString(w, "0000")
		line(w, "NAK\n")
		_, _ = w.Write(pack)
		return nil
	})
}

// No git makes such trees, but a server may send them. To fetch them again is no help.
func TestTree_directoryThatIsNone(t *testing.T) {
	for name, entry := range map[string]string{"Mode": "x a.txt", "Empty": "100644 ", "NoMode": "100644"} {
		t.Run(name, func(t *testing.T) {
			s := newHTTPS(t)
			o := s.newOrigin(t, map[string]string{"a.txt": "a"})
			blob := o.git(t, "rev-parse", "HEAD:a.txt")
			id, err := hex.DecodeString(blob)
			require.NoError(t, err)
			file := filepath.Join(t.TempDir(), "tree")
			require.NoError(t, os.WriteFile(file, append([]byte(entry+"\x00"), id...), 0o600))
			root := o.git(t, "hash-object", "-w", "-t", "tree", "--literally", file)
			commit := o.git(t, "commit-tree", "-m", "odd", root)
			s.sendAsIs(commit, o.packOf(t, commit, root, blob))
			store, rev := newStore(t), git.Revision{Ref: "main", Commit: commit}

			for range 2 {
				tree, err := store.Open(t.Context(), o.https(s), rev)
				require.NoError(t, err)
				_, err = tree.FS("dir")
				require.ErrorIs(t, err, git.ErrMalformed)
				require.ErrorIs(t, err, fs.ErrInvalid)
				assert.NotErrorIs(t, err, git.ErrCorrupt)
				assert.ErrorContains(t, err, root)
				tree.Close()
			}
			assert.EqualValues(t, 1, s.fetches.Load())
		})
	}
}

// C56: a mirror that lacks something is replaced, but not for ever.
func TestOpen_serverThatLeavesObjectsOut(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "a"})
	commit := o.git(t, "rev-parse", "HEAD")
	s.sendAsIs(commit, o.packOf(t, commit, o.git(t, "rev-parse", "HEAD^{tree}")))
	clock := clocktesting.NewFakePassiveClock(time.Now())
	store := newStore(t, git.WithClock(clock))
	read := func() error {
		tree, err := store.Open(t.Context(), o.https(s), git.Revision{Ref: "main", Commit: commit})
		require.NoError(t, err)
		defer tree.Close()
		fsys, err := tree.FS(".")
		require.NoError(t, err)
		_, err = fs.ReadFile(fsys, "a.txt")
		return err
	}

	require.ErrorIs(t, read(), git.ErrCorrupt, "it may be the disk")
	for range 2 {
		err := read()
		require.ErrorIs(t, err, git.ErrMalformed)
		assert.NotErrorIs(t, err, git.ErrCorrupt)
		assert.ErrorContains(t, err, "the server leaves it out")
	}
	assert.EqualValues(t, 2, s.fetches.Load(), "once more, and not again")

	clock.SetTime(clock.Now().Add(25 * time.Hour))
	require.ErrorIs(t, read(), git.ErrCorrupt, "by now it may be the disk")
	s.interfere(nil)
	require.NoError(t, read(), "the server has been corrected")
}
