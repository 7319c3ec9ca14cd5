package manifests

import (
	"bytes"
	"io"
	"io/fs"
	"time"
)

// single is a file system with one file, which need not be on disk.
type single struct {
	name    string
	content []byte
}

// Open opens the file, or the folder that it is in.
func (s single) Open(name string) (fs.File, error) {
	switch name {
	case ".":
		return &singleFolder{entries: []fs.DirEntry{fs.FileInfoToDirEntry(singleInfo(s))}}, nil
	case s.name:
		return singleFile{Reader: bytes.NewReader(s.content), info: singleInfo(s)}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// singleInfo describes the file.
type singleInfo single

func (i singleInfo) Name() string     { return i.name }
func (i singleInfo) Size() int64      { return int64(len(i.content)) }
func (singleInfo) Mode() fs.FileMode  { return 0o444 }
func (singleInfo) ModTime() time.Time { return time.Time{} }
func (singleInfo) IsDir() bool        { return false }
func (singleInfo) Sys() any           { return nil }

// singleFile is the open file.
type singleFile struct {
	*bytes.Reader
	info singleInfo
}

func (f singleFile) Stat() (fs.FileInfo, error) { return f.info, nil }
func (singleFile) Close() error                 { return nil }

// singleFolder is the open folder.
type singleFolder struct {
	entries []fs.DirEntry
}

func (f *singleFolder) Stat() (fs.FileInfo, error) { return folderInfo{}, nil }
func (f *singleFolder) Close() error               { return nil }
func (f *singleFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: ".", Err: fs.ErrInvalid}
}

// ReadDir returns the file, once.
func (f *singleFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	entries := f.entries
	f.entries = nil
	if n > 0 && len(entries) == 0 {
		return nil, io.EOF
	}
	return entries, nil
}

// folderInfo describes the folder.
type folderInfo struct{}

func (folderInfo) Name() string       { return "." }
func (folderInfo) Size() int64        { return 0 }
func (folderInfo) Mode() fs.FileMode  { return fs.ModeDir | 0o555 }
func (folderInfo) ModTime() time.Time { return time.Time{} }
func (folderInfo) IsDir() bool        { return true }
func (folderInfo) Sys() any           { return nil }
