package git

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"time"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// treeFS shows a directory of a Tree as a file system.
type treeFS struct {
	tree *Tree
	// dir is the directory's path in the repository.
	dir string
}

var (
	_ fs.ReadDirFS  = (*treeFS)(nil)
	_ fs.ReadFileFS = (*treeFS)(nil)
	_ fs.StatFS     = (*treeFS)(nil)
	_ fs.ReadLinkFS = (*treeFS)(nil)
)

// find returns the node at name. Errors are *fs.PathError.
func (f *treeFS) find(op, name string, follow bool) (node, error) {
	if !fs.ValidPath(name) {
		return node{}, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	n, err := f.tree.find(path.Join(f.dir, name), follow)
	if err != nil {
		return node{}, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return n, nil
}

// Open implements fs.FS. Links are followed.
func (f *treeFS) Open(name string) (fs.File, error) {
	n, err := f.find("open", name, true)
	if err != nil {
		return nil, err
	}
	info := fileInfo{name: path.Base(name), node: n, tree: f.tree}
	if n.mode == filemode.Dir {
		return &openDir{fileInfo: info}, nil
	}
	return &openFile{fileInfo: info}, nil
}

// ReadFile implements fs.ReadFileFS.
func (f *treeFS) ReadFile(name string) ([]byte, error) {
	n, err := f.find("read", name, true)
	if err != nil {
		return nil, err
	}
	if n.mode == filemode.Dir {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("it is a directory")}
	}
	content, err := f.tree.read(n.hash, f.tree.limits)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return content, nil
}

// ReadDir implements fs.ReadDirFS.
func (f *treeFS) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := f.find("read", name, true)
	if err != nil {
		return nil, err
	}
	entries, err := dirEntries(f.tree, n)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return entries, nil
}

// Stat implements fs.StatFS.
func (f *treeFS) Stat(name string) (fs.FileInfo, error) {
	return f.info("stat", name, true)
}

// Lstat implements fs.ReadLinkFS.
func (f *treeFS) Lstat(name string) (fs.FileInfo, error) {
	return f.info("lstat", name, false)
}

func (f *treeFS) info(op, name string, follow bool) (fs.FileInfo, error) {
	n, err := f.find(op, name, follow)
	if err != nil {
		return nil, err
	}
	info := &fileInfo{name: path.Base(name), node: n, tree: f.tree}
	return info.Stat()
}

// ReadLink implements fs.ReadLinkFS.
func (f *treeFS) ReadLink(name string) (string, error) {
	n, err := f.find("readlink", name, false)
	if err == nil && n.mode != filemode.Symlink {
		err = &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	if err != nil {
		return "", err
	}
	target, err := f.tree.target(n)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return target, nil
}

func dirEntries(t *Tree, dir node) ([]fs.DirEntry, error) {
	if dir.mode != filemode.Dir {
		return nil, errors.New("it is not a directory")
	}
	entries, err := t.list(dir)
	if err != nil {
		return nil, err
	}
	out := make([]fs.DirEntry, len(entries))
	for i, e := range entries {
		out[i] = dirEntry{entry: e, tree: t, parent: dir}
	}
	return out, nil
}

// dirEntry is an entry of a directory; its size is read only when asked for.
type dirEntry struct {
	entry  object.TreeEntry
	parent node
	tree   *Tree
}

func (e dirEntry) Name() string      { return e.entry.Name }
func (e dirEntry) IsDir() bool       { return e.entry.Mode == filemode.Dir }
func (e dirEntry) Type() fs.FileMode { return modeOf(e.entry.Mode).Type() }

func (e dirEntry) Info() (fs.FileInfo, error) {
	info := &fileInfo{name: e.entry.Name, node: e.parent.child(e.entry), tree: e.tree}
	return info.Stat()
}

func modeOf(m filemode.FileMode) fs.FileMode {
	switch m {
	case filemode.Dir:
		return fs.ModeDir | 0o555
	case filemode.Symlink:
		return fs.ModeSymlink | 0o777
	case filemode.Executable:
		return 0o555
	default:
		return 0o444
	}
}

// fileInfo describes a node. Git stores no times.
type fileInfo struct {
	name string
	node node
	tree *Tree
	size int64
}

func (i *fileInfo) Name() string       { return i.name }
func (i *fileInfo) Size() int64        { return i.size }
func (i *fileInfo) Mode() fs.FileMode  { return modeOf(i.node.mode) }
func (i *fileInfo) ModTime() time.Time { return time.Time{} }
func (i *fileInfo) IsDir() bool        { return i.node.mode == filemode.Dir }
func (i *fileInfo) Sys() any           { return nil }

// Stat looks the size up.
func (i *fileInfo) Stat() (fs.FileInfo, error) {
	out := *i
	if i.node.mode == filemode.Dir {
		return &out, nil
	}
	size, err := i.tree.size(i.node.hash)
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: i.node.path, Err: err}
	}
	out.size = size
	return &out, nil
}

// openFile reads the content of a file on the first Read.
type openFile struct {
	fileInfo
	content *bytes.Reader
}

func (f *openFile) Close() error { return nil }

func (f *openFile) Read(p []byte) (int, error) {
	if f.content == nil {
		content, err := f.tree.read(f.node.hash, f.tree.limits)
		if err != nil {
			return 0, &fs.PathError{Op: "read", Path: f.node.path, Err: err}
		}
		f.content = bytes.NewReader(content)
	}
	return f.content.Read(p)
}

// openDir lists a directory in portions.
type openDir struct {
	fileInfo
	entries []fs.DirEntry
	read    bool
}

func (d *openDir) Close() error { return nil }

func (d *openDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.node.path, Err: errors.New("it is a directory")}
}

// ReadDir implements fs.ReadDirFile.
func (d *openDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if !d.read {
		entries, err := dirEntries(d.tree, d.node)
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: d.node.path, Err: err}
		}
		d.entries, d.read = entries, true
	}
	if n <= 0 {
		rest := d.entries
		d.entries = nil
		return rest, nil
	}
	if len(d.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.entries))
	part := d.entries[:n]
	d.entries = d.entries[n:]
	return part, nil
}
