package git

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"waybill.dev/waybill/sync/excerpt"
)

// objects reads from the packs that a generation had when it was opened. Trees that are open at the
// same time share it, including the indexes and one bounded cache.
type objects struct {
	// mu guards storage and closed: go-git's storage is not safe for concurrent readers.
	mu      sync.Mutex
	storage *filesystem.Storage
	closed  bool
	// filtered is copied from the generation.
	filtered bool
	// users is guarded by the generation.
	users int
}

// largeBytes is the size from which an object is not kept in the cache.
const largeBytes = 1 << 20

// root returns the root directory of a commit.
func (o *objects) root(commit plumbing.Hash) (plumbing.Hash, error) {
	if err := o.lock(); err != nil {
		return plumbing.ZeroHash, err
	}
	defer o.mu.Unlock()
	c, err := object.GetCommit(o.storage, commit)
	if err != nil {
		return plumbing.ZeroHash, o.failed("commit", commit, err)
	}
	if _, err := o.storage.EncodedObject(plumbing.TreeObject, c.TreeHash); err != nil {
		return plumbing.ZeroHash, o.failed("the root of commit", commit, err)
	}
	return c.TreeHash, nil
}

// commit returns what a commit says of itself.
func (o *objects) commit(hash plumbing.Hash) (Commit, error) {
	if err := o.lock(); err != nil {
		return Commit{}, err
	}
	defer o.mu.Unlock()
	c, err := object.GetCommit(o.storage, hash)
	if err != nil {
		return Commit{}, o.failed("commit", hash, err)
	}
	return Commit{
		Author: excerpt.Of(c.Author.Name, 200), AuthoredAt: c.Author.When, Message: excerpt.Of(strings.TrimSpace(c.Message), maxCommitText),
	}, nil
}

// entries returns the entries of a directory, sorted by name, without submodules. A directory
// larger than the size limit of a file is rejected before it is decoded.
func (o *objects) entries(hash plumbing.Hash, l Limits) ([]object.TreeEntry, error) {
	if err := o.lock(); err != nil {
		return nil, err
	}
	defer o.mu.Unlock()
	encoded, err := o.storage.EncodedObject(plumbing.TreeObject, hash)
	if err != nil {
		return nil, o.failed("directory", hash, err)
	}
	if encoded.Size() > l.FileBytes {
		return nil, limitError("FileBytes", l.FileBytes, fmt.Sprintf("a directory takes %d bytes", encoded.Size()))
	}
	tree, err := object.DecodeTree(o.storage, encoded)
	switch {
	case errors.Is(err, object.ErrMalformedTree) && intact(encoded, hash):
		return nil, fmt.Errorf("%w: directory %s: %w; find it with git fsck, and push a commit without it", ErrMalformed, hash, err)
	case err != nil:
		return nil, o.failed("directory", hash, err)
	}
	entries := slices.DeleteFunc(tree.Entries, func(e object.TreeEntry) bool { return e.Mode == filemode.Submodule })
	slices.SortFunc(entries, byName)
	for i, e := range entries {
		if e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\x00") || i > 0 && entries[i-1].Name == e.Name {
			return nil, fmt.Errorf("%w: a directory holds an entry named %q that no file system takes", ErrOutside, e.Name)
		}
	}
	return entries, nil
}

// intact reports whether an object is on the disk as the server sent it.
func intact(encoded plumbing.EncodedObject, hash plumbing.Hash) bool {
	r, err := encoded.Reader()
	if err != nil {
		return false
	}
	defer func() { _ = r.Close() }()
	content, err := io.ReadAll(r)
	return err == nil && plumbing.ComputeHash(encoded.Type(), content) == hash
}

func byName(a, b object.TreeEntry) int {
	return strings.Compare(a.Name, b.Name)
}

// size returns the size of a file.
func (o *objects) size(hash plumbing.Hash, l Limits) (int64, error) {
	if err := o.lock(); err != nil {
		return 0, err
	}
	defer o.mu.Unlock()
	encoded, err := o.storage.EncodedObject(plumbing.BlobObject, hash)
	if err != nil {
		return 0, o.missing(hash, l, err)
	}
	return encoded.Size(), nil
}

// read returns the content of a file.
func (o *objects) read(hash plumbing.Hash, l Limits) ([]byte, error) {
	if err := o.lock(); err != nil {
		return nil, err
	}
	defer o.mu.Unlock()
	encoded, err := o.storage.EncodedObject(plumbing.BlobObject, hash)
	if err != nil {
		return nil, o.missing(hash, l, err)
	}
	if encoded.Size() > l.FileBytes {
		return nil, limitError("FileBytes", l.FileBytes, fmt.Sprintf("the file has %d bytes", encoded.Size()))
	}
	r, err := encoded.Reader()
	if err != nil {
		return nil, o.failed("file", hash, err)
	}
	defer func() { _ = r.Close() }()
	content := make([]byte, encoded.Size())
	if _, err := io.ReadFull(r, content); err != nil {
		return nil, o.failed("file", hash, err)
	}
	return content, nil
}

// missing returns why a file is not in the packs.
func (o *objects) missing(hash plumbing.Hash, l Limits, err error) error {
	if o.filtered && isMissing(err) {
		return limitError("FileBytes", l.FileBytes, "the file is too large")
	}
	return o.failed("file", hash, err)
}

// failed returns the error of a read. It is ErrCorrupt unless the disk may give the object the next
// time. The caller holds the lock.
func (o *objects) failed(what string, hash plumbing.Hash, err error) error {
	if isMomentary(err) {
		o.storage.Reindex() // or else it takes the indexes that it has read so far for all of them
		return fmt.Errorf("read %s %s: %w", what, hash, err)
	}
	return fmt.Errorf("%w: read %s %s: %w", ErrCorrupt, what, hash, err)
}

// lock begins a read, which the caller ends by unlocking mu. A caller that reads on while another
// closes its tree gets fs.ErrClosed: nothing is wrong with the mirror.
func (o *objects) lock() error {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return fs.ErrClosed
	}
	return nil
}

// close closes the packs once the read in progress has ended.
func (o *objects) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	_ = o.storage.Close()
}

// isMissing reports whether an object is not in the packs.
func isMissing(err error) bool {
	return errors.Is(err, plumbing.ErrObjectNotFound)
}
