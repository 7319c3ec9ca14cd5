package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"k8s.io/utils/clock"
)

// mirrorLayout changes whenever mirrors of an earlier version of this package cannot be read any
// more; they are then simply not found, and swept.
const mirrorLayout = "1"

// maxPacks is how many fetches a generation takes before it is replaced, if there is room, or else how
// many more it takes before that is tried again; more packs make every read slower.
const maxPacks = 50

const (
	generationPrefix = "generation-"
	temporaryPrefix  = "tmp-"
)

// errNotSent says that a fetch succeeded but did not bring the commit.
var errNotSent = fmt.Errorf("%w: the server sent a pack without the commit", ErrUnreachable)

// mirror is the local copy of one repository, as one set of credentials sees
// it.
type mirror struct {
	key    string
	dir    string
	remote *remote
	dialer dialer
	intake *intake
	clock  clock.PassiveClock

	// writing is held while the files on disk are changed.
	writing lock

	mu sync.Mutex
	// current is nil until the first fetch.
	current *generation
	// suspects are the commits of which something could not be read recently.
	suspects map[plumbing.Hash]suspicion

	// calls and used are guarded by the Store: calls is the number of calls under way, and used is
	// when the last one began.
	calls int
	used  time.Time
}

// newMirror picks up what an earlier process left in dir.
func newMirror(dir string, r *remote, in *intake, c clock.PassiveClock) (*mirror, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create mirror: %w", err)
	}
	d, err := newDialer(r, in.limits, in.guard, dir)
	if err != nil {
		return nil, err
	}
	m := &mirror{
		key: filepath.Base(dir), dir: dir, remote: r, dialer: d, intake: in, clock: c,
		writing: newLock(), suspects: make(map[plumbing.Hash]suspicion),
	}
	return m, m.load()
}

// load takes the newest readable generation and removes everything else, which a killed process
// must have left.
func (m *mirror) load() error {
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		return fmt.Errorf("read mirror: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(m.dir, e.Name())
		g := loadNamed(path)
		if g == nil || m.current != nil && m.current.number > g.number {
			_ = os.RemoveAll(path)
			continue
		}
		if m.current != nil {
			_ = os.RemoveAll(m.current.dir)
		}
		m.current = g
	}
	return nil
}

// loadNamed returns nil if path is not a readable generation.
func loadNamed(path string) *generation {
	suffix, ok := strings.CutPrefix(filepath.Base(path), generationPrefix)
	if !ok {
		return nil
	}
	number, err := strconv.Atoi(suffix)
	if err != nil {
		return nil
	}
	g, err := loadGeneration(path, number)
	if err != nil {
		return nil
	}
	return g
}

func (m *mirror) generation() *generation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current
}

// open returns a commit that is in the mirror, or fails with ErrAbsent. A commit that is damaged
// counts as absent, and the mirror as broken; one that cannot be read just now does not.
func (m *mirror) open(rev Revision) (*Tree, error) {
	commit := plumbing.NewHash(rev.Commit)
	g := m.generation()
	if g == nil || !g.has(commit) {
		return nil, ErrAbsent
	}
	o, ok := g.retain()
	if !ok {
		return nil, ErrAbsent
	}
	root, err := o.root(commit)
	if err != nil {
		err = m.noted(commit, g, err)
		g.release(o)
		if errors.Is(err, ErrCorrupt) {
			return nil, ErrAbsent
		}
		return nil, err
	}
	return m.newTree(rev, root, g, o), nil
}

// suspicion says that something of a commit could not be read.
type suspicion struct {
	// generation is where it was first seen, and at is when.
	generation int
	at         time.Time
}

// mendAgain is how long a commit that could not be read is not fetched a second time. Without that, a commit that
// the server itself has damaged would have the whole repository fetched at the end of each back-off, which a
// GitSync bounds to 5 min: 288 times a day in place of once.
const mendAgain = 24 * time.Hour

// noted returns the error of a read of a commit. If the mirror is damaged, the next open does not
// find the commit, so that the mirror is replaced. If the commit was replaced recently for the same
// reason, the disk is not to blame: the error is ErrMalformed then, and the mirror stays.
func (m *mirror) noted(commit plumbing.Hash, g *generation, err error) error {
	if !errors.Is(err, ErrCorrupt) {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if g != m.current {
		return err
	}
	now := m.clock.Now()
	maps.DeleteFunc(m.suspects, func(_ plumbing.Hash, s suspicion) bool { return now.Sub(s.at) >= mendAgain })
	earlier, known := m.suspects[commit]
	if known && earlier.generation < g.number {
		return fmt.Errorf("%w: %s, also after commit %s was fetched again; the server leaves it out: run git fsck there, and push a new commit",
			ErrMalformed, strings.TrimPrefix(err.Error(), ErrCorrupt.Error()+": "), commit)
	}
	if !known {
		m.suspects[commit] = suspicion{generation: g.number, at: now}
	}
	g.markBroken()
	return err
}

// fetch brings a commit into the mirror. If an existing mirror cannot take it, for a reason that is
// not the server's, a fresh one is created beside it and swapped in.
func (m *mirror) fetch(ctx context.Context, rev Revision) error {
	if err := m.writing.acquire(ctx); err != nil {
		return err
	}
	defer m.writing.release()
	g, full := m.generation(), m.intake.quota.full
	switch {
	case g == nil || g.isBroken():
		return m.replace(ctx, rev)
	case g.has(plumbing.NewHash(rev.Commit)):
		return nil
	case g.crowded():
		if err := m.replace(ctx, rev); !errors.Is(err, full) {
			return err
		}
		// There is no room for both: one that is slow is better than none.
	}
	err := m.fill(ctx, g, rev)
	var failed *transferError
	if errors.As(err, &failed) && ctx.Err() == nil && !errors.Is(err, full) {
		return m.replace(ctx, rev)
	}
	return err
}

// transferError is an error that may not occur with a fresh mirror.
type transferError struct{ error }

func (e *transferError) Unwrap() error { return e.error }

// replace fetches into a fresh generation and makes it the current one.
func (m *mirror) replace(ctx context.Context, rev Revision) error {
	old := m.generation()
	number := 1
	if old != nil {
		number = old.number + 1
		if old.isBroken() { // nothing of it is opened any more, and there may be no room for both
			if err := old.retire(); err != nil {
				return err
			}
		}
	}
	if err := m.intake.quota.take(emptyMirror); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(m.dir, temporaryPrefix)
	if err != nil {
		return fmt.Errorf("create mirror: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	g, err := createGeneration(dir, number)
	if err != nil {
		return err
	}
	if err := m.fill(ctx, g, rev); err != nil {
		return err
	}
	g.dir = filepath.Join(m.dir, generationPrefix+strconv.Itoa(number))
	if err := os.Rename(dir, g.dir); err != nil {
		return fmt.Errorf("swap mirror: %w", err)
	}
	m.mu.Lock()
	m.current = g
	m.mu.Unlock()
	if old == nil {
		return nil
	}
	return old.retire()
}

// fill tries the ways to get a revision until one succeeds.
func (m *mirror) fill(ctx context.Context, g *generation, rev Revision) error {
	sought := wanted{name: rev.Ref, commit: plumbing.NewHash(rev.Commit).String()}
	s, adv, err := advertised(ctx, m.dialer, sought)
	if err != nil {
		return err
	}
	stateless := m.remote.endpoint.Protocol != "ssh"
	for i, a := range plan(adv, rev, stateless) {
		if i > 0 {
			// A session takes only one request.
			if s, adv, err = advertised(ctx, m.dialer, sought); err != nil {
				return err
			}
		}
		err = m.transfer(ctx, g, s, adv, a)
		_ = s.Close()
		if err == nil {
			err = m.accept(g, rev)
		}
		switch {
		case err == nil:
			return nil
		case a.guess && (refused(err) || errors.Is(err, errNotSent)):
			continue
		default:
			return &transferError{err}
		}
	}
	_ = s.Close()
	return unobtainable(rev)
}

// accept marks a commit as complete once it can be read.
func (m *mirror) accept(g *generation, rev Revision) error {
	commit := plumbing.NewHash(rev.Commit)
	if err := g.verify(commit); err != nil {
		return fmt.Errorf("%w: %w", errNotSent, err)
	}
	return g.complete(commit)
}

// list asks the server for its references.
func (m *mirror) list(ctx context.Context, w wanted) (*packp.AdvRefs, error) {
	s, adv, err := advertised(ctx, m.dialer, w)
	if err != nil {
		return nil, err
	}
	return adv, s.Close()
}

// idle reports whether no tree is open, and no fetch under way, not even one without waiters.
func (m *mirror) idle() bool {
	if len(m.writing) > 0 {
		return false
	}
	g := m.generation()
	return g == nil || g.idle()
}
