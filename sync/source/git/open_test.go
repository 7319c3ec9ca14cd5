package git_test

import (
	"io/fs"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/git"
	"waybill.dev/waybill/test/env"
)

func readFile(t *testing.T, tree *git.Tree, name string) string {
	t.Helper()
	fsys, err := tree.FS(".")
	require.NoError(t, err)
	content, err := fs.ReadFile(fsys, name)
	require.NoError(t, err)
	return string(content)
}

// K20, K21
func TestOpen_findsEveryKindOfRef(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "first"})
	first := o.git(t, "rev-parse", "HEAD")
	o.git(t, "tag", "v1.0.0")
	o.git(t, "tag", "--annotate", "--message", "annotated", "v1.2.0")
	second := o.push(t, map[string]string{"a.txt": "second"})
	o.git(t, "tag", "v2.0.0-rc.1")
	o.git(t, "push", "--quiet", "--tags", "origin")
	o.git(t, "checkout", "--quiet", "-b", "feature/x")
	third := o.push(t, map[string]string{"a.txt": "third"})
	o.git(t, "push", "--quiet", "origin", "HEAD:refs/pull/420/head")

	cases := map[string]struct {
		reason string
		ref    git.Ref
		want   git.Revision
		text   string
	}{
		"Default":      {"no ref means the server's default branch", git.Ref{}, git.Revision{Ref: "main", Commit: second}, "second"},
		"Branch":       {"a branch, with a slash", git.Ref{Branch: "feature/x"}, git.Revision{Ref: "feature/x", Commit: third}, "third"},
		"Tag":          {"a lightweight tag", git.Ref{Tag: "v1.0.0"}, git.Revision{Ref: "v1.0.0", Commit: first}, "first"},
		"AnnotatedTag": {"an annotated tag is followed to its commit", git.Ref{Tag: "v1.2.0"}, git.Revision{Ref: "v1.2.0", Commit: first}, "first"},
		"SemVer":       {"the highest within the range", git.Ref{SemVer: ">=1.0.0"}, git.Revision{Ref: "v1.2.0", Commit: first}, "first"},
		"Prerelease":   {"pre-releases only when asked for", git.Ref{SemVer: ">=1.0.0-0"}, git.Revision{Ref: "v2.0.0-rc.1", Commit: second}, "second"},
		"Name":         {"any reference by its full name", git.Ref{Name: "refs/pull/420/head"}, git.Revision{Ref: "refs/pull/420/head", Commit: third}, "third"},
		"Head":         {"the default branch by its full name", git.Ref{Name: "HEAD"}, git.Revision{Ref: "main", Commit: second}, "second"},
		"Commit":       {"a commit by its hash", git.Ref{Commit: first}, git.Revision{Commit: first}, "first"},
		"Precedence":   {"commit, name, semver, tag, branch", git.Ref{Commit: first, Name: "refs/heads/main", Branch: "feature/x"}, git.Revision{Ref: "feature/x", Commit: first}, "first"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := openRef(t, newStore(t), o.https(s), tc.ref)
			assert.Equal(t, tc.want, tree.Revision(), tc.reason)
			assert.Equal(t, tc.text, readFile(t, tree, "a.txt"), tc.reason)
		})
	}
}

func TestRevision_String(t *testing.T) {
	assert.Equal(t, "main@sha1:abc", git.Revision{Ref: "main", Commit: "abc"}.String())
	assert.Equal(t, "sha1:abc", git.Revision{Commit: "abc"}.String())
}

// K22
func TestOpen_fetchesOneCommitAndThenTheDifference(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "one", "dir/b.txt": "kept"})
	o.push(t, map[string]string{"a.txt": "two"})
	var sent sizes
	s.interfere(sent.measure)
	store := newStore(t)

	first := openRef(t, store, o.https(s), git.Ref{Branch: "main"})
	o.push(t, map[string]string{"a.txt": "three"})
	second := openRef(t, store, o.https(s), git.Ref{Branch: "main"})
	again := openRef(t, store, o.https(s), git.Ref{Branch: "main"})

	assert.Equal(t, "two", readFile(t, first, "a.txt"), "an open tree does not change")
	assert.Equal(t, "three", readFile(t, second, "a.txt"))
	assert.Equal(t, "kept", readFile(t, second, "dir/b.txt"), "what the first fetch brought is used")
	assert.Equal(t, second.Revision(), again.Revision())
	assert.EqualValues(t, 2, s.fetches.Load(), "the second fetch is the last: nothing changed since")
	require.Len(t, sent.objects, 2)
	assert.Equal(t, []uint32{5, 3}, sent.objects, "commit, two directories, two files; then commit, root, one file")
}

// P9
func TestOpen_followsForcePush(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "base"})
	o.push(t, map[string]string{"a.txt": "wrong", "b.txt": "wrong"})
	store := newStore(t)
	before := openRef(t, store, o.https(s), git.Ref{Branch: "main"})
	o.git(t, "reset", "--quiet", "--hard", "HEAD~1")
	o.push(t, map[string]string{"a.txt": "right"})
	runGit(t, o.bare, "reflog", "expire", "--expire=now", "--all")
	runGit(t, o.bare, "gc", "--quiet", "--prune=now")

	after := openRef(t, store, o.https(s), git.Ref{Branch: "main"})

	assert.Equal(t, "wrong", readFile(t, before, "a.txt"), "the old commit stays readable")
	assert.Equal(t, "right", readFile(t, after, "a.txt"))
	fsys, err := after.FS("")
	require.NoError(t, err)
	_, err = fs.Stat(fsys, "b.txt")
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

// A revert makes a tree equal to one that the server believes we had with the
// commit before, which a shallow mirror does not.
func TestOpen_getsFilesOfARevert(t *testing.T) {
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "original"})
	o.push(t, map[string]string{"a.txt": "changed"})
	store := newStore(t)
	openRef(t, store, o.https(s), git.Ref{Branch: "main"})
	o.push(t, map[string]string{"a.txt": "original"})

	tree := openRef(t, store, o.https(s), git.Ref{Branch: "main"})

	assert.Equal(t, "original", readFile(t, tree, "a.txt"))
}

func TestOpen_concurrentCallersShareOneFetch(t *testing.T) {
	const callers = 50
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "shared"})
	store := newStore(t)
	rev, err := store.Resolve(t.Context(), o.https(s), git.Ref{Branch: "main"})
	require.NoError(t, err)

	trees := make([]*git.Tree, callers)
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { trees[i], errs[i] = store.Open(t.Context(), o.https(s), rev) })
	}
	wg.Wait()

	for i := range callers {
		require.NoError(t, errs[i])
		assert.Equal(t, "shared", readFile(t, trees[i], "a.txt"))
		trees[i].Close()
	}
	assert.EqualValues(t, 1, s.fetches.Load())
}

// Callers that ask while a listing is under way share the next one: the one
// under way may be older than their question.
func TestResolve_concurrentCallersShareListings(t *testing.T) {
	const callers = 50
	s := newHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "shared"})
	var arrive, release = make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.interfere(func(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
		once.Do(func() { close(arrive) })
		<-release
		return w
	})
	store := newStore(t)
	resolve := func() error {
		_, err := store.Resolve(t.Context(), o.https(s), git.Ref{Branch: "main"})
		return err
	}

	errs := make([]error, callers)
	var wg sync.WaitGroup
	wg.Go(func() { errs[0] = resolve() })
	<-arrive
	for i := 1; i < callers; i++ {
		wg.Go(func() { errs[i] = resolve() })
	}
	require.Eventually(t, func() bool { return store.ListingsQueued() == callers-1 }, env.Limit, time.Millisecond)
	close(release)
	wg.Wait()

	for _, err := range errs {
		require.NoError(t, err)
	}
	assert.EqualValues(t, 2, s.listings.Load(), "the first, and the shared second")
}

func TestOpen_mirrorsAreSeparateByCredentials(t *testing.T) {
	s := newServer(t)
	s.Auth("reader", "secret")
	s.startHTTPS(t)
	o := s.newOrigin(t, map[string]string{"a.txt": "private"})
	store := newStore(t)
	allowed := o.https(s)
	allowed.Credentials.Username, allowed.Credentials.Password = "reader", "secret"
	rev := openRef(t, store, allowed, git.Ref{}).Revision()

	_, err := store.Open(t.Context(), o.https(s), rev)

	assert.ErrorIs(t, err, git.ErrAuthentication, "what one may read, another may not, although it is in the store")
}
