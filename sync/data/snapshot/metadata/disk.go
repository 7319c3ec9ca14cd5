package metadata

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"waybill.dev/waybill/api/expansion"
)

// The files of a snapshot's folder. The temporary one is complete before it gets the other's name.
const (
	fileName      = "definitions.jsonl.gz"
	temporaryName = "definitions.tmp"
)

// folder opens the folder of a snapshot; the caller closes it. The error is fs.ErrNotExist if there is
// none. A link in its place is refused: it could lead to another snapshot's.
func (s *Store) folder(name string, create bool) (*os.Root, error) {
	all, err := os.OpenRoot(s.Directory)
	if err != nil {
		return nil, fmt.Errorf("open the directory for definitions: %w", withoutNotExist(err))
	}
	defer all.Close()
	if create {
		if err := all.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if err := flush(all, "."); err != nil {
			return nil, err
		}
	}
	info, err := all.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, damaged("%q in the directory for definitions is not a folder", name)
	}
	return all.OpenRoot(name)
}

// withoutNotExist keeps a directory that is missing as a whole from being mistaken for a snapshot that is
// not there: its volume may not be mounted.
func withoutNotExist(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("it does not exist")
	}
	return err
}

// writeFile stores the bytes so that, after a crash at any moment, there is the old file or the new one.
func (s *Store) writeFile(name string, packed []byte) error {
	folder, err := s.folder(name, true)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Remove(temporaryName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := folder.OpenFile(temporaryName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(packed)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := folder.Rename(temporaryName, fileName); err != nil {
		return err
	}
	return flush(folder, ".")
}

// flush makes the entries of a folder survive a crash of the machine.
func flush(root *os.Root, name string) error {
	folder, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// readFile returns the bytes.
func (s *Store) readFile(name string) ([]byte, error) {
	folder, err := s.folder(name, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, damaged("folder %q is missing in the directory for definitions", name)
	}
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	info, err := folder.Lstat(fileName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, damaged("file %q is missing in the directory for definitions", name+"/"+fileName)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() > maxChunks*chunkSize:
		return nil, damaged("file %q in the directory for definitions was replaced", name+"/"+fileName)
	}
	file, err := folder.Open(fileName)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(expansion.BytesReader(file, maxChunks*chunkSize, errTooLong))
}

// removeFile deletes the folder and what writeFile put there; what others put there stays, and is
// an error.
func (s *Store) removeFile(name string) error {
	all, err := os.OpenRoot(s.Directory)
	if err != nil {
		return fmt.Errorf("open the directory for definitions: %w", withoutNotExist(err))
	}
	defer all.Close()
	if info, err := all.Lstat(name); err == nil && info.IsDir() {
		for _, file := range []string{fileName, temporaryName} {
			if err := all.Remove(name + "/" + file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	if err := all.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return flush(all, ".")
}
