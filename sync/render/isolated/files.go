package isolated

import (
	"bytes"
	"io/fs"
)

// files is the repository in the process that builds: it asks the other one. It caches the answers, as
// files do not change during a build, and kustomize asks for them again and again.
type files struct {
	ask   func(question) reply
	known map[question]reply
}

var (
	_ fs.StatFS     = files{}
	_ fs.ReadDirFS  = files{}
	_ fs.ReadLinkFS = files{}
)

// info asks for something that is small.
func (f files) info(what what, name string) (reply, error) {
	q := question{what, name}
	r, known := f.known[q]
	if !known {
		r = f.ask(q)
		f.known[q] = r
	}
	return r, r.Fault.err()
}

// Stat implements fs.StatFS.
func (f files) Stat(name string) (fs.FileInfo, error) {
	r, err := f.info(stat, name)
	if err != nil {
		return nil, err
	}
	return r.Files[0], nil
}

// Lstat implements fs.ReadLinkFS.
func (f files) Lstat(name string) (fs.FileInfo, error) {
	r, err := f.info(lstat, name)
	if err != nil {
		return nil, err
	}
	return r.Files[0], nil
}

// ReadLink implements fs.ReadLinkFS.
func (f files) ReadLink(name string) (string, error) {
	r, err := f.info(readLink, name)
	return r.Target, err
}

// ReadDir implements fs.ReadDirFS.
func (f files) ReadDir(name string) ([]fs.DirEntry, error) {
	r, err := f.info(readDir, name)
	entries := make([]fs.DirEntry, len(r.Files))
	for i, info := range r.Files {
		entries[i] = fs.FileInfoToDirEntry(info)
	}
	return entries, err
}

// Open implements fs.FS.
func (f files) Open(name string) (fs.File, error) {
	r := f.ask(question{readFile, name})
	if err := r.Fault.err(); err != nil {
		return nil, err
	}
	return &file{Reader: bytes.NewReader(r.Content), info: r.Files[0]}, nil
}

// file is a file that was read, or a directory.
type file struct {
	*bytes.Reader
	info fileInfo
}

// Stat implements fs.File.
func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }

// Close implements fs.File.
func (f *file) Close() error { return nil }
