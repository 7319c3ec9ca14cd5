package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"k8s.io/utils/clock"

	"waybill.dev/waybill/sync/source/address"
)

// Store keeps mirrors of repositories in a directory. It is safe for concurrent use; only one
// process at a time may use a directory.
type Store struct {
	dir    string
	clock  clock.PassiveClock
	intake *intake
	guard  *os.File
	began  time.Time

	listings *flights[*packp.AdvRefs]
	fetches  *flights[struct{}]

	mu      sync.Mutex
	mirrors map[string]*mirror
}

// Option configures the Store that NewStore returns.
type Option func(*Store)

// WithLimits replaces DefaultLimits; zero fields keep their default.
func WithLimits(l Limits) Option {
	return func(s *Store) { s.intake.limits = l.orDefault() }
}

// WithGuard decides where repositories may be. Default: anywhere.
func WithGuard(g address.Guard) Option {
	return func(s *Store) { s.intake.guard = g }
}

// WithClock replaces the clock by which Sweep judges age.
func WithClock(c clock.PassiveClock) Option {
	return func(s *Store) { s.clock = c }
}

// NewStore opens dir, creating it if it does not exist, and locks it for this process: it fails if
// another process has it. What an earlier process left in it is used again.
func NewStore(dir string, opts ...Option) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open git store: %w", err)
	}
	guard, err := takeDirectory(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("open git store %s: %w", dir, err)
	}
	s := &Store{
		dir:      dir,
		clock:    clock.RealClock{},
		intake:   &intake{limits: DefaultLimits(), turn: newLock()},
		guard:    guard,
		listings: newFlights[*packp.AdvRefs](true),
		fetches:  newFlights[struct{}](false),
		mirrors:  make(map[string]*mirror),
	}
	for _, opt := range opts {
		opt(s)
	}
	s.began = s.clock.Now()
	s.intake.quota, err = newQuota(s.intake.limits.StoreBytes, func() (int64, error) { return weigh(s.dir) }, s.shed)
	if err != nil {
		_ = guard.Close()
		return nil, fmt.Errorf("open git store %s: %w", dir, err)
	}
	return s, nil
}

// Close releases the directory. Mirrors stay for the next process. Trees must be closed before.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.mirrors {
		m.dialer.close()
	}
	return s.guard.Close()
}

// Resolve returns the commit that ref stands for on the server now. It costs one ls-remote, or
// nothing if ref names a commit in full. Callers that ask about one repository at the same time
// share it, but never get an answer that is older than their question.
func (s *Store) Resolve(ctx context.Context, repo Repository, ref Ref) (Revision, error) {
	m, err := s.enter(repo)
	if err != nil {
		return Revision{}, err
	}
	defer s.leave(m)
	if ref.Commit != "" {
		return ref.pinned()
	}
	sought := ref.wanted()
	adv, err := s.listings.do(ctx, m.key+sought.name, func(ctx context.Context) (*packp.AdvRefs, error) {
		return m.list(ctx, sought)
	})
	if err == nil {
		var rev Revision
		if rev, err = ref.find(adv); err == nil {
			return rev, nil
		}
	}
	return Revision{}, m.remote.classify("resolve reference of "+m.remote.url, err)
}

// Open returns the files of a revision that Resolve has found, fetching them if the mirror does not
// hold them. Callers that want the same revision at the same time share the fetch. The caller must
// close the Tree.
func (s *Store) Open(ctx context.Context, repo Repository, rev Revision) (*Tree, error) {
	m, err := s.enter(repo)
	if err != nil {
		return nil, err
	}
	defer s.leave(m)
	if !plumbing.IsHash(rev.Commit) {
		return nil, fmt.Errorf("%w: commit %q is not a full SHA-1 of 40 hexadecimal digits", ErrInvalid, rev.Commit)
	}
	what := "fetch " + rev.String() + " of " + m.remote.url
	// A commit that was just fetched is gone again only if another fetch has replaced the mirror in
	// between.
	for range 3 {
		t, err := m.open(rev)
		if !errors.Is(err, ErrAbsent) {
			return t, err
		}
		_, err = s.fetches.do(ctx, m.key+rev.Commit, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, m.fetch(ctx, rev)
		})
		if err != nil {
			return nil, m.remote.classify(what, err)
		}
	}
	return nil, fmt.Errorf("%s: %w: it was replaced while the commit was being opened", what, ErrCorrupt)
}

// Cached is like Open, but never contacts the server: if the mirror does not hold the revision, the
// error is ErrAbsent.
func (s *Store) Cached(repo Repository, rev Revision) (*Tree, error) {
	m, err := s.enter(repo)
	if err != nil {
		return nil, err
	}
	defer s.leave(m)
	t, err := m.open(rev)
	if err != nil {
		return nil, fmt.Errorf("open %s of %s: %w", rev, m.remote.url, err)
	}
	return t, nil
}

// Sweep removes the mirrors that have not been used for that time, and returns how many. Mirrors
// with an open Tree stay.
func (s *Store) Sweep(unused time.Duration) (int, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return 0, fmt.Errorf("sweep git store: %w", err)
	}
	removed := 0
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		forgotten, failed := s.forget(e.Name(), s.clock.Now().Add(-unused))
		if forgotten {
			failed = os.RemoveAll(filepath.Join(s.dir, trashPrefix+e.Name()))
			removed++
		}
		err = errors.Join(err, failed)
	}
	if err != nil {
		return removed, fmt.Errorf("sweep git store: %w", err)
	}
	return removed, nil
}

// trashPrefix marks directories that are being removed.
const trashPrefix = "trash-"

// forget drops a mirror that was not used since then, and moves its directory out of the way, so
// that a new mirror of the same name does not find the remains. It reports whether it did.
func (s *Store) forget(key string, since time.Time) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, known := s.mirrors[key]; known {
		if m.calls > 0 || m.used.After(since) || !m.idle() {
			return false, nil
		}
		m.dialer.close()
		delete(s.mirrors, key)
	} else if s.began.After(since) {
		return false, nil
	}
	if err := os.Rename(filepath.Join(s.dir, key), filepath.Join(s.dir, trashPrefix+key)); err != nil {
		return false, err
	}
	return true, nil
}

// enter finds or creates the mirror and protects it from Sweep until leave.
func (s *Store) enter(repo Repository) (*mirror, error) {
	r, err := repo.parse()
	if err != nil {
		return nil, err
	}
	key := r.key(s.intake.limits)
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.mirrors[key]
	if !ok {
		if m, err = newMirror(filepath.Join(s.dir, key), r, s.intake, s.clock); err != nil {
			return nil, r.classify("open mirror of "+r.url, err)
		}
		s.mirrors[key] = m
	}
	m.calls++
	m.used = s.clock.Now()
	return m, nil
}

func (s *Store) leave(m *mirror) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.calls--
	m.used = s.clock.Now()
}
