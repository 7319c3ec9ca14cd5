package git_test

import (
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/git"
)

func TestOpen_largeFile(t *testing.T) {
	limits := git.Limits{FileBytes: 1000}
	s := newHTTPS(t)
	// Compresses to almost nothing: a bomb.
	o := s.newOrigin(t, map[string]string{"small.txt": "fine", "huge.txt": strings.Repeat("x", 5_000_000)})

	t.Run("ServerLeavesItOut", func(t *testing.T) {
		o.configure(t, "uploadpack.allowFilter", "true")
		tree := openRef(t, newStore(t, git.WithLimits(limits)), o.https(s), git.Ref{})
		assert.Equal(t, "fine", readFile(t, tree, "small.txt"), "the rest of the repository is of use")
		fsys, err := tree.FS(".")
		require.NoError(t, err)
		_, err = fs.ReadFile(fsys, "huge.txt")
		require.ErrorIs(t, err, git.ErrLimit)
		assert.ErrorContains(t, err, "limit FileBytes is 1000")
	})
	t.Run("ServerCannot", func(t *testing.T) {
		o.configure(t, "uploadpack.allowFilter", "false")
		store := newStore(t, git.WithLimits(limits))
		rev, err := store.Resolve(t.Context(), o.https(s), git.Ref{})
		require.NoError(t, err)
		_, err = store.Open(t.Context(), o.https(s), rev)
		require.ErrorIs(t, err, git.ErrLimit)
		assert.ErrorContains(t, err, "limit FileBytes is 1000")
		assert.ErrorContains(t, err, "uploadpack.allowFilter")
	})
}

func TestOpen_limitsOnAFetch(t *testing.T) {
	s := newHTTPS(t)
	files := make(map[string]string)
	for i := range 50 {
		files[fmt.Sprintf("f%02d.txt", i)] = noise(1000 + i)
	}
	o := s.newOrigin(t, files)
	for name, tc := range map[string]struct {
		limits git.Limits
		want   string
	}{
		"Size":    {git.Limits{MirrorBytes: 2000}, "limit MirrorBytes is 2000"},
		"Objects": {git.Limits{Objects: 40}, "limit Objects is 40"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			store := newStoreIn(t, dir, git.WithLimits(tc.limits))
			rev, err := store.Resolve(t.Context(), o.https(s), git.Ref{})
			require.NoError(t, err)
			_, err = store.Open(t.Context(), o.https(s), rev)
			require.ErrorIs(t, err, git.ErrLimit)
			assert.ErrorContains(t, err, tc.want)
			assert.Empty(t, generations(t, dir), "nothing stays on disk")
		})
	}
}

func TestTree_limits(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"many/a": "a", "many/b": "b", "many/c/d": "d", "x/x/x/x/deep": "deep"})
	store := newStore(t, git.WithLimits(git.Limits{Files: 3, Depth: 2}))
	tree := openRef(t, store, o.https(s), git.Ref{})

	many, err := tree.FS("many")
	require.NoError(t, err)
	err = fs.WalkDir(many, ".", func(_ string, _ fs.DirEntry, err error) error { return err })
	require.ErrorIs(t, err, git.ErrLimit)
	assert.ErrorContains(t, err, "limit Files is 3")

	_, err = tree.FS("x/x/x/x")
	require.ErrorIs(t, err, git.ErrLimit)
	assert.ErrorContains(t, err, "limit Depth is 2")
}

func TestTree_symbolicLinks(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"shared/base.txt": "shared", "app/own.txt": "own"})
	for link, target := range map[string]string{
		"app/file":     "../shared/base.txt",
		"app/dir":      "../shared",
		"app/chain":    "file",
		"app/outside":  "../../etc/passwd",
		"app/absolute": "/etc/passwd",
		"app/loop":     "loop",
		"app/ping":     "pong",
		"app/pong":     "ping",
		"app/self":     ".",
		"app/dangling": "nowhere",
		"app/backward": "../app/../shared/../app/own.txt",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(o.work, link)))
	}
	o.pushAll(t)
	o.linkTo(t, "app/long", strings.Repeat("./", 2100)+"own.txt")
	tree := openRef(t, newStore(t), o.https(s), git.Ref{})
	app, err := tree.FS("app")
	require.NoError(t, err)

	for name, want := range map[string]string{
		"file": "shared", "dir/base.txt": "shared", "chain": "shared", "backward": "own", "self/self/own.txt": "own",
	} {
		content, err := fs.ReadFile(app, name)
		require.NoError(t, err, name)
		assert.Equal(t, want, string(content), name)
	}
	for name, want := range map[string]error{
		"outside":       git.ErrOutside,
		"absolute":      git.ErrOutside,
		"loop":          git.ErrLimit,
		"ping":          git.ErrLimit,
		"long":          git.ErrLimit,
		"dangling":      fs.ErrNotExist,
		"../shared":     fs.ErrInvalid,
		"file/below":    fs.ErrNotExist,
		"outside/below": git.ErrOutside,
	} {
		_, err := fs.ReadFile(app, name)
		assert.ErrorIs(t, err, want, name)
	}
	_, err = fs.ReadFile(app, strings.Repeat("self/", 41)+"own.txt")
	assert.ErrorContains(t, err, "limit Links is 40")
	target, err := fs.ReadLink(app, "outside")
	require.NoError(t, err)
	assert.Equal(t, "../../etc/passwd", target, "a link can be looked at without following it")
}

// linkTo pushes a symbolic link that no file system would take.
func (o *origin) linkTo(t *testing.T, name, target string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "target")
	require.NoError(t, os.WriteFile(file, []byte(target), 0o600))
	blob := o.git(t, "hash-object", "-w", file)
	o.git(t, "update-index", "--add", "--cacheinfo", "120000,"+blob+","+name)
	o.git(t, "commit", "--quiet", "--message", "link")
	o.git(t, "push", "--quiet", "origin", "HEAD")
}

// No git makes such trees, but a server may send them.
func TestTree_entriesThatNoFileSystemTakes(t *testing.T) {
	for name, entry := range map[string]string{"Parent": "..", "Self": ".", "Separator": "../../etc"} {
		t.Run(name, func(t *testing.T) {
			s := newHTTPS(t)
			o := s.newOrigin(t, map[string]string{"a.txt": "a"})
			blob, err := hex.DecodeString(o.git(t, "rev-parse", "HEAD:a.txt"))
			require.NoError(t, err)
			file := filepath.Join(t.TempDir(), "tree")
			require.NoError(t, os.WriteFile(file, append([]byte("100644 "+entry+"\x00"), blob...), 0o600))
			tree := o.git(t, "hash-object", "-w", "-t", "tree", "--literally", file)
			o.git(t, "reset", "--quiet", "--soft", o.git(t, "commit-tree", "-m", "odd", tree))
			o.git(t, "push", "--quiet", "--force", "origin", "HEAD")

			fsys, err := openRef(t, newStore(t), o.https(s), git.Ref{}).FS(".")
			require.NoError(t, err)
			_, err = fs.ReadDir(fsys, ".")
			require.ErrorIs(t, err, git.ErrOutside)
			assert.ErrorIs(t, err, fs.ErrInvalid)
			assert.ErrorContains(t, err, "that no file system takes")
		})
	}
}

// K23
func TestTree_FSOfAPath(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"apps/web/a.txt": "web", "apps/db/a.txt": "db"})
	tree := openRef(t, newStore(t), o.https(s), git.Ref{})

	for _, dir := range []string{"apps/web", "./apps/web", "/apps/web/", "apps/db/../web"} {
		fsys, err := tree.FS(dir)
		require.NoError(t, err, dir)
		content, err := fs.ReadFile(fsys, "a.txt")
		require.NoError(t, err, dir)
		assert.Equal(t, "web", string(content), dir)
	}
	for dir, want := range map[string]error{
		"..":             git.ErrOutside,
		"../x":           git.ErrOutside,
		"apps/../../x":   git.ErrOutside,
		"nope":           fs.ErrNotExist,
		"apps/web/a.txt": nil,
	} {
		_, err := tree.FS(dir)
		require.Error(t, err, dir)
		if want != nil {
			assert.ErrorIs(t, err, want, dir)
		}
		assert.ErrorContains(t, err, dir)
	}
}
