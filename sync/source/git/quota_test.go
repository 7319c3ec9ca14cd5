package git_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"waybill.dev/waybill/sync/source/git"
)

// room is a store with room for two mirrors of three.
type room struct {
	dir    string
	clock  *clocktesting.FakePassiveClock
	store  *git.Store
	origin *origin
	server *server
}

func newRoom(t *testing.T) *room {
	t.Helper()
	s := newHTTPS(t)
	r := &room{
		dir: t.TempDir(), clock: clocktesting.NewFakePassiveClock(time.Now()),
		server: s, origin: s.newOrigin(t, map[string]string{"a.txt": noise(400_000)}),
	}
	r.restart(t)
	return r
}

// newNarrowRoom returns a store with room for one mirror, and not for another beside it.
func newNarrowRoom(t *testing.T) *room {
	t.Helper()
	r := newRoom(t)
	r.origin.push(t, map[string]string{"a.txt": noise(2_000_000)})
	require.NoError(t, r.store.Close())
	r.store = newStoreIn(t, r.dir, git.WithClock(r.clock), git.WithLimits(git.Limits{StoreBytes: 3 << 20}))
	return r
}

func (r *room) restart(t *testing.T) {
	t.Helper()
	if r.store != nil {
		require.NoError(t, r.store.Close())
	}
	r.store = newStoreIn(t, r.dir, git.WithClock(r.clock), git.WithLimits(git.Limits{StoreBytes: 1 << 20}))
}

// repository returns the same repository with credentials that differ, and so a mirror of its own.
func (r *room) repository(n int) git.Repository {
	repo := r.origin.https(r.server)
	repo.Credentials.Username = fmt.Sprintf("reader-%d", n)
	return repo
}

// open fetches a mirror if it is not there. Every call is later than the one before.
func (r *room) open(t *testing.T, n int) (*git.Tree, error) {
	t.Helper()
	r.clock.SetTime(r.clock.Now().Add(time.Second))
	return r.store.Open(t.Context(), r.repository(n), head(t, r.origin))
}

func (r *room) use(t *testing.T, n int) {
	t.Helper()
	tree, err := r.open(t, n)
	require.NoError(t, err)
	tree.Close()
}

// kept lists the mirrors that are in the store.
func (r *room) kept(t *testing.T) []int {
	t.Helper()
	var out []int
	for n := range 3 {
		tree, err := r.store.Cached(r.repository(n), head(t, r.origin))
		if err != nil {
			require.ErrorIs(t, err, git.ErrAbsent)
			continue
		}
		tree.Close()
		out = append(out, n)
	}
	return out
}

func TestOpen_mirrorsThatNobodyUsesMakeRoom(t *testing.T) {
	r := newRoom(t)
	r.use(t, 0)
	r.use(t, 1)
	r.use(t, 0)

	r.use(t, 2)

	assert.Equal(t, []int{0, 2}, r.kept(t), "1 was not used for longest")
}

func TestOpen_noRoomBesideWhatIsRead(t *testing.T) {
	r := newRoom(t)
	first, err := r.open(t, 0)
	require.NoError(t, err)
	defer first.Close()
	second, err := r.open(t, 1)
	require.NoError(t, err)

	_, err = r.open(t, 2)
	require.ErrorIs(t, err, git.ErrLimit)
	require.ErrorContains(t, err, "limit StoreBytes is 1048576")
	assert.Equal(t, noise(400_000), readFile(t, first, "a.txt"), "what is read stays")

	second.Close()
	r.use(t, 2)
	assert.Equal(t, []int{0, 2}, r.kept(t))
}

func TestOpen_mirrorsOfTheProcessBeforeTakeRoom(t *testing.T) {
	r := newRoom(t)
	r.use(t, 0)
	r.use(t, 1)
	r.restart(t)
	r.use(t, 1)

	r.use(t, 2)

	assert.Equal(t, []int{1, 2}, r.kept(t), "0 was not requested")
}

// C56: a mirror that must be replaced is not in the way of the one that replaces it.
func TestOpen_damagedMirrorMakesRoom(t *testing.T) {
	r := newNarrowRoom(t)
	r.use(t, 0)
	damage(t, r.dir, func(pack string) error {
		content, err := os.ReadFile(pack)
		if err != nil {
			return err
		}
		clear(content)
		return os.WriteFile(pack, content, 0o600)
	})

	tree, err := r.open(t, 0)

	require.NoError(t, err)
	defer tree.Close()
	assert.Equal(t, noise(2_000_000), readFile(t, tree, "a.txt"))
	assert.Equal(t, []string{"generation-2"}, generations(t, r.dir))
}

// C56: more packs make reads slower, which is better than to stay behind for ever.
func TestOpen_mirrorWithTooManyPacksGoesOnWhereThereIsNoRoom(t *testing.T) {
	r := newNarrowRoom(t)
	r.use(t, 0)
	first := head(t, r.origin).Commit
	for i := range 51 {
		require.NoError(t, os.WriteFile(filepath.Join(r.origin.work, "b.txt"), []byte(strconv.Itoa(i)), 0o600))
		r.origin.git(t, "add", "--all")
		r.origin.git(t, "commit", "--quiet", "--message", "change")
	}
	r.origin.git(t, "push", "--quiet", "origin", "HEAD")
	for _, commit := range strings.Fields(r.origin.git(t, "rev-list", "--reverse", first+"..HEAD")) {
		tree, err := r.store.Open(t.Context(), r.repository(0), git.Revision{Commit: commit})
		require.NoError(t, err)
		tree.Close()
	}

	assert.Equal(t, []string{"generation-1"}, generations(t, r.dir))
	assert.Less(t, r.server.fetches.Load(), int32(60), "it is tried at times, and not with every fetch")
}
