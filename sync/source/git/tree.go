package git

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"k8s.io/utils/lru"

	"waybill.dev/waybill/sync/keyed"
)

// Tree holds the files of one revision, read from the mirror on demand. It is safe for concurrent
// use. Its content does not change, whatever is fetched meanwhile.
type Tree struct {
	mirror     *mirror
	revision   Revision
	root       node
	limits     Limits
	generation *generation
	objects    *objects

	// directories holds the most recently read directories, by hash.
	directories *lru.Cache

	closed atomic.Bool
	// listed holds the directories that count towards Limits.Files already, in files.
	listed keyed.Map[string, bool]
	files  atomic.Int64
}

// cachedDirectories is how many directories a Tree remembers: enough for the ancestors of the file
// being read.
const cachedDirectories = 128

// newTree takes over the reader that retain has counted.
func (m *mirror) newTree(rev Revision, root plumbing.Hash, g *generation, o *objects) *Tree {
	return &Tree{
		mirror:      m,
		revision:    rev,
		root:        node{path: ".", mode: filemode.Dir, hash: root},
		limits:      m.intake.limits,
		generation:  g,
		objects:     o,
		directories: lru.New(cachedDirectories),
	}
}

// Revision returns the revision that the tree was opened for.
func (t *Tree) Revision() Revision {
	return t.revision
}

// Commit is what a commit says of itself. It is what its author wrote, and it is not verified.
type Commit struct {
	// Author is a name; AuthoredAt is when they say that they wrote it.
	Author     string
	AuthoredAt time.Time
	// Message is at most 4 KiB of it.
	Message string
}

// maxCommitText bounds what is kept of the message of a commit.
const maxCommitText = 4 << 10

// Commit returns what the commit of the tree says of itself.
func (t *Tree) Commit() (Commit, error) {
	return t.objects.commit(plumbing.NewHash(t.revision.Commit))
}

// Close releases the mirror. File systems returned by FS fail from then on. Closing twice is
// harmless.
func (t *Tree) Close() {
	if !t.closed.Swap(true) {
		t.generation.release(t.objects)
	}
}

// FS returns the files below a directory of the repository; "", "." and "/" mean all of it.
// Symbolic links that lead elsewhere in the repository are followed; links that lead out of it fail
// with ErrOutside. FS fails with fs.ErrNotExist if there is no such directory.
//
// The result also implements fs.ReadDirFS, fs.ReadFileFS, fs.StatFS and fs.ReadLinkFS.
func (t *Tree) FS(dir string) (fs.FS, error) {
	cleaned, err := inside(dir)
	if err != nil {
		return nil, err
	}
	n, err := t.find(cleaned, true)
	if err == nil && n.mode != filemode.Dir {
		err = errors.New("it is not a directory")
	}
	if err != nil {
		return nil, fmt.Errorf("open path %q of %s: %w", dir, t.revision, err)
	}
	return &treeFS{tree: t, dir: n.path}, nil
}

// inside cleans a user-supplied path, relative to the repository's root.
func inside(p string) (string, error) {
	cleaned := path.Clean(strings.TrimLeft(p, "/"))
	if cleaned == ".." || strings.HasPrefix(cleaned, "../") {
		return "", fmt.Errorf("%w: %q; paths are relative to the root of the repository", ErrOutside, p)
	}
	return cleaned, nil
}

// node is a file, directory or symbolic link of the tree.
type node struct {
	// path is the path in the repository once links are followed.
	path string
	mode filemode.FileMode
	hash plumbing.Hash
}

// walk is the state of following one path.
type walk struct {
	// trail is the nodes from the root to the current position.
	trail []node
	// pending is the names still to follow.
	pending []string
	links   int
}

// find follows a path from the root of the repository, including the symbolic links in it; the last
// one only if follow is set.
func (t *Tree) find(name string, follow bool) (node, error) {
	w := &walk{trail: []node{t.root}, pending: strings.Split(name, "/")}
	for len(w.pending) > 0 {
		step := w.pending[0]
		w.pending = w.pending[1:]
		switch step {
		case "", ".":
			continue
		case "..":
			if len(w.trail) == 1 {
				return node{}, fmt.Errorf("%w: by a symbolic link in %q", ErrOutside, name)
			}
			w.trail = w.trail[:len(w.trail)-1]
			continue
		}
		next, err := t.child(w.trail[len(w.trail)-1], step)
		if err != nil {
			return node{}, err
		}
		if next.mode == filemode.Symlink && (follow || len(w.pending) > 0) {
			if err := t.followLink(w, next, name); err != nil {
				return node{}, err
			}
			continue
		}
		if len(w.trail)-1 > t.limits.Depth {
			return node{}, limitError("Depth", int64(t.limits.Depth), fmt.Sprintf("path %q is too deep", name))
		}
		w.trail = append(w.trail, next)
	}
	return w.trail[len(w.trail)-1], nil
}

// followLink replaces the name of a link by its target.
func (t *Tree) followLink(w *walk, link node, name string) error {
	w.links++
	if w.links > t.limits.Links {
		return limitError("Links", int64(t.limits.Links), fmt.Sprintf("path %q has too many symbolic links, or a loop of them", name))
	}
	target, err := t.target(link)
	if err != nil {
		return err
	}
	if path.IsAbs(target) {
		return fmt.Errorf("%w: by the absolute symbolic link %q", ErrOutside, link.path)
	}
	w.pending = append(strings.Split(target, "/"), w.pending...)
	return nil
}

// target reads a symbolic link.
func (t *Tree) target(link node) (string, error) {
	const longest = 4096
	l := t.limits
	l.FileBytes = longest
	content, err := t.read(link.hash, l)
	if errors.Is(err, ErrLimit) {
		return "", fmt.Errorf("%w: the target of symbolic link %q has more than %d bytes", ErrLimit, link.path, longest)
	}
	return string(content), err
}

// child finds an entry of a directory.
func (t *Tree) child(parent node, name string) (node, error) {
	if parent.mode != filemode.Dir {
		return node{}, fs.ErrNotExist
	}
	entries, err := t.entries(parent)
	if err != nil {
		return node{}, err
	}
	i, ok := slices.BinarySearchFunc(entries, object.TreeEntry{Name: name}, byName)
	if !ok {
		return node{}, fs.ErrNotExist
	}
	return parent.child(entries[i]), nil
}

func (n node) child(e object.TreeEntry) node {
	return node{path: path.Join(n.path, e.Name), mode: e.Mode, hash: e.Hash}
}

// entries returns the entries of a directory, sorted by name.
func (t *Tree) entries(dir node) ([]object.TreeEntry, error) {
	if cached, ok := t.directories.Get(dir.hash); ok {
		return cached.([]object.TreeEntry), t.open()
	}
	if err := t.open(); err != nil {
		return nil, err
	}
	entries, err := t.objects.entries(dir.hash, t.limits)
	if err != nil {
		return nil, t.noted(err)
	}
	t.directories.Add(dir.hash, entries)
	return entries, nil
}

// list is entries for a user: it counts the files.
func (t *Tree) list(dir node) ([]object.TreeEntry, error) {
	entries, err := t.entries(dir)
	if err != nil {
		return nil, err
	}
	if before := t.listed.Change(dir.path, func(bool) (bool, bool) { return true, true }); !before {
		t.files.Add(int64(len(entries)))
	}
	if t.files.Load() > int64(t.limits.Files) {
		return nil, limitError("Files", int64(t.limits.Files), "the path holds too many files")
	}
	return entries, nil
}

// read returns the content of a file.
func (t *Tree) read(hash plumbing.Hash, l Limits) ([]byte, error) {
	if err := t.open(); err != nil {
		return nil, err
	}
	content, err := t.objects.read(hash, l)
	return content, t.noted(err)
}

// size returns the size of a file.
func (t *Tree) size(hash plumbing.Hash) (int64, error) {
	if err := t.open(); err != nil {
		return 0, err
	}
	size, err := t.objects.size(hash, t.limits)
	return size, t.noted(err)
}

// open fails once the tree is closed.
func (t *Tree) open() error {
	if t.closed.Load() {
		return fs.ErrClosed
	}
	return nil
}

// noted makes the next Store.Open replace a mirror that cannot be read, once.
func (t *Tree) noted(err error) error {
	return t.mirror.noted(plumbing.NewHash(t.revision.Commit), t.generation, err)
}
