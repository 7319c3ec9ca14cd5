package git_test

import (
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/git"
)

// generations lists what a store keeps of its only repository.
func generations(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	require.NoError(t, err)
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	return found
}

// damage calls f for each pack of the store.
func damage(t *testing.T, dir string, f func(pack string) error) {
	t.Helper()
	packs, err := filepath.Glob(filepath.Join(dir, "*", "generation-*", "objects", "pack", "*.pack"))
	require.NoError(t, err)
	require.NotEmpty(t, packs)
	for _, pack := range packs {
		require.NoError(t, f(pack))
	}
}

// C56
func TestOpen_replacesADamagedMirror(t *testing.T) {
	for name, harm := range map[string]func(string) error{
		"PackGone":      os.Remove,
		"PackTruncated": func(pack string) error { return os.Truncate(pack, 40) },
		"PackOverwritten": func(pack string) error {
			return os.WriteFile(pack, []byte(strings.Repeat("garbage", 200)), 0o600)
		},
		"IndexGone": func(pack string) error { return os.Remove(strings.TrimSuffix(pack, "pack") + "idx") },
		"IndexOverwritten": func(pack string) error {
			return os.WriteFile(strings.TrimSuffix(pack, "pack")+"idx", []byte("garbage"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHTTPS(t)
			o := s.newOrigin(t, map[string]string{"a.txt": "sound"})
			dir := t.TempDir()
			store := newStoreIn(t, dir)
			tree := openRef(t, store, o.https(s), git.Ref{Branch: "main"})
			tree.Close()
			damage(t, dir, harm)

			healed := openRef(t, store, o.https(s), git.Ref{Branch: "main"})

			assert.Equal(t, "sound", readFile(t, healed, "a.txt"))
			assert.Equal(t, []string{"generation-2"}, generations(t, dir))
		})
	}
}

func TestOpen_replacesAMirrorThatAReaderFoundDamaged(t *testing.T) {
	s := newHTTPS(t)
	// Large enough to be read from the pack anew, and not compressible.
	o := s.newOrigin(t, map[string]string{"big.bin": noise(100_000)})
	dir := t.TempDir()
	store := newStoreIn(t, dir)
	tree := openRef(t, store, o.https(s), git.Ref{Branch: "main"})
	damage(t, dir, func(pack string) error {
		content, err := os.ReadFile(pack)
		if err != nil {
			return err
		}
		clear(content[50_000:60_000])
		return os.WriteFile(pack, content, 0o600)
	})
	fsys, err := tree.FS(".")
	require.NoError(t, err)

	_, err = fs.ReadFile(fsys, "big.bin")
	require.ErrorIs(t, err, git.ErrCorrupt)
	healed := openRef(t, store, o.https(s), git.Ref{Branch: "main"})

	assert.Equal(t, noise(100_000), readFile(t, healed, "big.bin"))
	assert.Equal(t, []string{"generation-1", "generation-2"}, generations(t, dir), "the old one stays while it is read")
	tree.Close()
	assert.Equal(t, []string{"generation-2"}, generations(t, dir))
}

// C56: what is damaged may be found only when a difference to it arrives.
func TestOpen_replacesAMirrorThatCannotTakeACommit(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"big.bin": noise(100_000)})
	dir := t.TempDir()
	store := newStoreIn(t, dir)
	openRef(t, store, o.https(s), git.Ref{Branch: "main"}).Close()
	damage(t, dir, func(pack string) error {
		content, err := os.ReadFile(pack)
		if err != nil {
			return err
		}
		clear(content[50_000:60_000])
		return os.WriteFile(pack, content, 0o600)
	})
	o.push(t, map[string]string{"big.bin": noise(100_000) + "changed"})

	healed := openRef(t, store, o.https(s), git.Ref{Branch: "main"})

	assert.Equal(t, noise(100_000)+"changed", readFile(t, healed, "big.bin"))
	assert.Equal(t, []string{"generation-2"}, generations(t, dir))
}

// C56
func TestOpen_replacesAMirrorWithTooManyPacks(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "0"})
	dir := t.TempDir()
	store := newStoreIn(t, dir)
	reader := openRef(t, store, o.https(s), git.Ref{Branch: "main"})
	for i := range 50 {
		require.NoError(t, os.WriteFile(filepath.Join(o.work, "a.txt"), []byte(strconv.Itoa(i+1)), 0o600))
		o.git(t, "commit", "--quiet", "--all", "--message", "change")
	}
	o.git(t, "push", "--quiet", "origin", "HEAD")
	for _, commit := range strings.Fields(o.git(t, "rev-list", "--reverse", "HEAD")) {
		openRef(t, store, o.https(s), git.Ref{Commit: commit}).Close()
	}

	assert.Equal(t, "0", readFile(t, reader, "a.txt"), "a reader keeps its snapshot")
	assert.Equal(t, []string{"generation-1", "generation-2"}, generations(t, dir))
	reader.Close()
	assert.Equal(t, []string{"generation-2"}, generations(t, dir))
	last := openRef(t, store, o.https(s), git.Ref{Branch: "main"})
	assert.Equal(t, "50", readFile(t, last, "a.txt"))
}

// P13
func TestOpen_transferThatBreaksLeavesTheMirror(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "good"})
	dir := t.TempDir()
	store := newStoreIn(t, dir)
	first := openRef(t, store, o.https(s), git.Ref{Branch: "main"})
	rev := first.Revision()
	first.Close()
	o.push(t, map[string]string{"a.txt": noise(50_000)})
	broken, err := store.Resolve(t.Context(), o.https(s), git.Ref{Branch: "main"})
	require.NoError(t, err)
	s.interfere(func(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
		if strings.HasSuffix(r.URL.Path, "/git-upload-pack") {
			return &cutWriter{ResponseWriter: w, left: 20_000, over: func() { panic(http.ErrAbortHandler) }}
		}
		return w
	})

	_, err = store.Open(t.Context(), o.https(s), broken)
	require.ErrorIs(t, err, git.ErrUnreachable)
	kept, err := store.Open(t.Context(), o.https(s), rev)
	require.NoError(t, err, "what was good stays, without asking the server")
	defer kept.Close()
	assert.Equal(t, "good", readFile(t, kept, "a.txt"))
	assert.Equal(t, []string{"generation-1"}, generations(t, dir))

	s.interfere(nil)
	healed := openRef(t, store, o.https(s), git.Ref{Branch: "main"})
	assert.Equal(t, noise(50_000), readFile(t, healed, "a.txt"))
}

// A full or broken disk must not read as a server that is down.
func TestOpen_errorsOfTheDiskAreNotTheServers(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "a"})
	dir := t.TempDir()
	store := newStoreIn(t, dir)
	rev, err := store.Resolve(t.Context(), o.https(s), git.Ref{})
	require.NoError(t, err)
	mirrors, err := filepath.Glob(filepath.Join(dir, "*", ""))
	require.NoError(t, err)
	for _, mirror := range mirrors {
		require.NoError(t, os.RemoveAll(mirror))
	}

	_, err = store.Open(t.Context(), o.https(s), rev)

	require.ErrorIs(t, err, fs.ErrNotExist)
	assert.NotErrorIs(t, err, git.ErrUnreachable)
}

func TestNewStore_cleansUpAfterAKilledFetch(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": noise(50_000)})
	dir := t.TempDir()
	halfway, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.interfere(func(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
		if strings.HasSuffix(r.URL.Path, "/git-upload-pack") {
			return &cutWriter{ResponseWriter: w, left: 20_000, over: func() {
				once.Do(func() { close(halfway) })
				<-release
			}}
		}
		return w
	})
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), crashDir+"="+dir, crashURL+"="+o.https(s).URL, crashCA+"="+string(s.ca))
	require.NoError(t, child.Start())
	<-halfway
	require.NotEmpty(t, generations(t, dir), "the fetch is under way")
	_, err := git.NewStore(dir)
	require.ErrorContains(t, err, "another process uses the directory")

	require.NoError(t, child.Process.Kill())
	_ = child.Wait()
	close(release)
	s.interfere(nil)

	store := newStoreIn(t, dir)
	tree := openRef(t, store, o.https(s), git.Ref{Branch: "main"})
	assert.Equal(t, noise(50_000), readFile(t, tree, "a.txt"))
	assert.Equal(t, []string{"generation-1"}, generations(t, dir), "nothing of the killed fetch is left")
}

func TestNewStore_keepsMirrorsOfTheProcessBefore(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "kept"})
	dir := t.TempDir()
	first := newStoreIn(t, dir)
	rev := openRef(t, first, o.https(s), git.Ref{Branch: "main"}).Revision()
	require.NoError(t, first.Close())
	s.StopHTTP()

	tree, err := newStoreIn(t, dir).Open(t.Context(), o.https(s), rev)

	require.NoError(t, err, "the server is not needed")
	defer tree.Close()
	assert.Equal(t, "kept", readFile(t, tree, "a.txt"))
}

// cutWriter lets some bytes pass and then calls over before each write.
type cutWriter struct {
	http.ResponseWriter
	left int
	over func()
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if w.left <= 0 {
		w.over()
	}
	n, err := w.ResponseWriter.Write(p[:min(len(p), max(w.left, 1))])
	w.left -= n
	w.Flush()
	if err == nil && n < len(p) {
		var more int
		more, err = w.Write(p[n:])
		n += more
	}
	return n, err
}

// Flush is asked for by the server.
func (w *cutWriter) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

// noise returns text that does not compress, the same every time.
func noise(size int) string {
	b := make([]byte, size)
	state := uint32(1)
	for i := range b {
		state = state*1664525 + 1013904223
		b[i] = '!' + byte(state>>24)%90
	}
	return string(b)
}
