package main

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// entry is a file, or a folder if content is nil, of an archive.
type entry struct {
	name    string
	mode    fs.FileMode
	content []byte
}

// writeTar writes entries in the order given, all of one time and of user 0.
func writeTar(w io.Writer, entries []entry, at time.Time) error {
	archive := tar.NewWriter(w)
	for _, e := range entries {
		header := &tar.Header{
			Name: e.name, Mode: int64(e.mode.Perm()), Size: int64(len(e.content)), ModTime: at, Typeflag: tar.TypeReg, Format: tar.FormatPAX,
		}
		if e.mode.IsDir() {
			header.Typeflag, header.Name = tar.TypeDir, e.name+"/"
			if e.mode&fs.ModeSticky != 0 {
				header.Mode |= 0o1000
			}
		}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(e.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

// writeTarGz writes entries as a compressed archive into a new file.
func writeTarGz(file string, entries []entry, at time.Time) (err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	compressed, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := writeTar(compressed, entries, at); err != nil {
		return err
	}
	return compressed.Close()
}

// folder reads the files below a folder, in the order of their names, each below prefix.
func folder(dir, prefix string, mode fs.FileMode) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		entries = append(entries, entry{path.Join(prefix, filepath.ToSlash(name)), mode, content})
		return nil
	})
	return entries, err
}
