package git

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// quota bounds what all mirrors of a Store take on disk together.
type quota struct {
	most int64
	// full is the error when there is no room.
	full error
	// weigh returns what they take now; shed makes room, and returns how much.
	weigh func() (int64, error)
	shed  func(bytes int64) int64

	mu sync.Mutex
	// used is what they take at most: what has gone is found out by weighing, once there seems to be
	// no room.
	used int64
}

const (
	// emptyMirror is what a repository without a pack takes.
	emptyMirror = 64 << 10
	// indexedObject is what an object takes in the index of a pack.
	indexedObject = 40
)

func newQuota(most int64, weigh func() (int64, error), shed func(int64) int64) (*quota, error) {
	used, err := weigh()
	full := limitError("StoreBytes", most,
		"the local mirrors of all repositories are too large together, and none is idle; give them more room, or split them among several processes")
	return &quota{most: most, full: full, weigh: weigh, shed: shed, used: used}, err
}

// take makes room for bytes that are about to be written, at the expense of unused mirrors.
func (q *quota) take(bytes int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.used+bytes <= q.most {
		q.used += bytes
		return nil
	}
	used, err := q.weigh()
	if err != nil {
		return err
	}
	// A little more than is needed, so that the next caller need not do this again.
	const spare = 16
	if over := used + bytes - (q.most - q.most/spare); over > 0 {
		used -= q.shed(over)
	}
	q.used = used
	if used+bytes > q.most {
		return q.full
	}
	q.used += bytes
	return nil
}

// charged is a writer that takes the room for what it writes.
type charged struct {
	io.Writer
	quota *quota
}

// Write implements io.Writer.
func (c charged) Write(p []byte) (int, error) {
	if err := c.quota.take(int64(len(p))); err != nil {
		return 0, err
	}
	return c.Writer.Write(p)
}

// weigh returns what a directory takes on disk, where even the smallest file takes a block. Files
// that go meanwhile do not count.
func weigh(dir string) (int64, error) {
	const block = 4 << 10
	var total int64
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil {
			var info fs.FileInfo
			if info, err = e.Info(); err == nil {
				total += max(block, (info.Size()+block-1)/block*block)
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return total, err
}

// shed removes unused mirrors, the least recently used first, until they have given up that many
// bytes, and returns how many they did. What cannot be removed stays.
func (s *Store) shed(bytes int64) int64 {
	freed := int64(0)
	for _, key := range s.leastRecent() {
		if freed >= bytes {
			break
		}
		forgotten, err := s.forget(key, s.clock.Now())
		if !forgotten || err != nil {
			continue
		}
		trash := filepath.Join(s.dir, trashPrefix+key)
		size, err := weigh(trash)
		if errors.Join(err, os.RemoveAll(trash)) == nil {
			freed += size
		}
	}
	return freed
}

// leastRecent lists the directories of the mirrors, the least recently used first: before all, what
// an earlier process left and was not requested yet.
func (s *Store) leastRecent() []string {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	used := make(map[string]time.Time)
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		keys = append(keys, e.Name())
		if m, known := s.mirrors[e.Name()]; known {
			used[e.Name()] = m.used
		}
	}
	slices.SortStableFunc(keys, func(a, b string) int { return used[a].Compare(used[b]) })
	return keys
}
