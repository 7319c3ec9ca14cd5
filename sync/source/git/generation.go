package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// generation is one bare repository on disk. A mirror has one current generation, and may have
// older ones that are still read.
type generation struct {
	dir string
	// number orders the generations of a mirror.
	number int

	mu sync.Mutex
	// commits are those whose objects are all here.
	commits map[plumbing.Hash]bool
	// newest is the commit that was fetched last or, after a restart, one of commits; zero if there
	// is none.
	newest plumbing.Hash
	// packs and bytes are the number and the total size of the packs.
	packs int
	bytes int64
	// filtered says that the server left out files above the limit.
	filtered bool
	// broken says that something that must be here could not be read.
	broken bool
	// readers counts open trees; retired says that the last one removes dir.
	readers int
	retired bool
	// shared is what current readers of the current packs share; nil if there are no readers, or if
	// packs were added since it was opened.
	shared *objects
}

// Layout of a generation, in addition to git's own files.
const (
	// completeRefs holds a reference for each complete commit, named after it.
	completeRefs = "refs/waybill/"
	// filteredMark exists if the server left files out.
	filteredMark = "waybill-filtered"
)

// createGeneration creates an empty bare repository.
func createGeneration(dir string, number int) (*generation, error) {
	g := &generation{dir: dir, number: number, commits: make(map[plumbing.Hash]bool)}
	storage := g.storage(0)
	if err := storage.Init(); err != nil {
		return nil, fmt.Errorf("create mirror: %w", err)
	}
	return g, nil
}

// loadGeneration reads a generation that an earlier process left, and removes its unfinished packs.
func loadGeneration(dir string, number int) (*generation, error) {
	g := &generation{dir: dir, number: number, commits: make(map[plumbing.Hash]bool)}
	refs, err := g.storage(0).IterReferences()
	if err != nil {
		return nil, fmt.Errorf("read mirror: %w", err)
	}
	err = refs.ForEach(func(ref *plumbing.Reference) error {
		if strings.HasPrefix(ref.Name().String(), completeRefs) {
			g.commits[ref.Hash()] = true
			g.newest = ref.Hash()
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read mirror: %w", err)
	}
	_, err = os.Stat(filepath.Join(dir, filteredMark))
	g.filtered = err == nil
	return g, g.measure()
}

// measure counts the packs.
func (g *generation) measure() error {
	packs := filepath.Join(g.dir, "objects", "pack")
	entries, err := os.ReadDir(packs)
	if err != nil {
		return fmt.Errorf("read mirror: %w", err)
	}
	for _, e := range entries {
		if leftover, _ := filepath.Match(temporaryPack, e.Name()); leftover {
			_ = os.Remove(filepath.Join(packs, e.Name()))
			continue
		}
		info, err := e.Info()
		if err != nil {
			return fmt.Errorf("read mirror: %w", err)
		}
		if filepath.Ext(e.Name()) == ".pack" {
			g.packs++
			g.bytes += info.Size()
		}
	}
	return nil
}

// cacheBytes bounds the unpacked objects that one reader's storage keeps, which are mainly the
// bases of deltas.
const cacheBytes = 8 * cache.MiByte

// storage opens the repository. largeBytes is the size from which objects are
// streamed; 0 means never.
func (g *generation) storage(largeBytes int64) *filesystem.Storage {
	return filesystem.NewStorageWithOptions(osfs.New(g.dir), cache.NewObjectLRU(cacheBytes), filesystem.Options{
		ExclusiveAccess:      true,
		KeepDescriptors:      true,
		LargeObjectThreshold: largeBytes,
	})
}

// has reports whether the commit can be opened.
func (g *generation) has(commit plumbing.Hash) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.commits[commit] && !g.broken
}

// crowded reports whether it is time to replace this generation for its number of packs.
func (g *generation) crowded() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.packs > 0 && g.packs%maxPacks == 0
}

// isBroken reports whether nothing of this generation can be opened.
func (g *generation) isBroken() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.broken
}

// added records that a pack was ingested.
func (g *generation) added(size int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.packs++
	g.bytes += size
	g.shared = nil
}

// complete records, on disk first, that every object of the commit is here.
func (g *generation) complete(commit plumbing.Hash) error {
	name := plumbing.ReferenceName(completeRefs + commit.String())
	if err := g.storage(0).SetReference(plumbing.NewHashReference(name, commit)); err != nil {
		return fmt.Errorf("write mirror: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.commits[commit], g.newest = true, commit
	return nil
}

// markFiltered records, on disk first, that the server leaves files out.
func (g *generation) markFiltered() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.filtered {
		return nil
	}
	if err := os.WriteFile(filepath.Join(g.dir, filteredMark), nil, 0o600); err != nil {
		return fmt.Errorf("write mirror: %w", err)
	}
	g.filtered = true
	return nil
}

// markBroken makes the next Open replace this generation.
func (g *generation) markBroken() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.broken = true
}

// retain adds a reader and returns the current objects. It fails if the generation is about to go.
func (g *generation) retain() (*objects, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.retired {
		return nil, false
	}
	g.readers++
	if g.shared == nil {
		g.shared = &objects{storage: g.storage(largeBytes), filtered: g.filtered}
	}
	g.shared.users++
	return g.shared, true
}

// release reverts retain.
func (g *generation) release(o *objects) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.readers--
	o.users--
	if o.users == 0 {
		o.close()
		if g.shared == o {
			g.shared = nil
		}
	}
	if g.retired && g.readers == 0 {
		_ = os.RemoveAll(g.dir)
	}
}

// retire removes the generation as soon as it has no readers.
func (g *generation) retire() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.retired = true
	if g.readers > 0 {
		return nil
	}
	return os.RemoveAll(g.dir)
}

// idle reports whether there are no readers.
func (g *generation) idle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.readers == 0
}

// verify finds the root directory of a commit, which must be here.
func (g *generation) verify(commit plumbing.Hash) error {
	o, ok := g.retain()
	if !ok {
		return errors.New("verify mirror: it is being removed")
	}
	defer g.release(o)
	_, err := o.root(commit)
	return err
}
