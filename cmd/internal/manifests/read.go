package manifests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/plain"
)

// standardInput is the name of the standard input in arguments and in messages.
const standardInput = "-"

// maxInput is how many bytes are read from the standard input at most.
const maxInput = 64 << 20

// Set is what was read.
type Set struct {
	// Objects in the order of the arguments; File is the path as it was given.
	Objects []manifest.Object

	// Problems are files and documents that could not be used.
	Problems []manifest.Problem

	// Charts are the Chart.yaml of folders that were left out because they hold a Helm chart.
	Charts []string

	// folders are where the objects were found, one for each: for what a kustomization makes, that is
	// the folder of the kustomization, whatever files it reads.
	folders []string

	stdin []byte
	lines map[place]*document
}

// Read reads files, folders and, for `-`, in. A folder is read recursively: kustomizations are
// built, charts are left out, and everything else is plain manifests. It returns an error if a path
// does not exist; faults in the content are problems.
func Read(paths []string, in io.Reader) (*Set, error) {
	s := &Set{lines: map[place]*document{}}
	for _, name := range paths {
		if err := s.add(name, in); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Set) add(name string, in io.Reader) error {
	if name == standardInput {
		content, err := io.ReadAll(io.LimitReader(in, maxInput+1))
		if err != nil {
			return fmt.Errorf("read the standard input: %w", err)
		}
		if len(content) > maxInput {
			return fmt.Errorf("read the standard input: more than %d bytes", maxInput)
		}
		s.stdin = content
		return s.render(standardInput, content)
	}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no file or folder %s", name)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if info.IsDir() {
		return s.folder(name)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return s.render(name, content)
}

// render reads one file, whatever its extension.
func (s *Set) render(name string, content []byte) error {
	file := path.Base(filepath.ToSlash(name))
	switch {
	case name == standardInput:
		file = "stdin.yaml"
	case !isManifest(file):
		file += ".yaml"
	}
	objects, problems, err := plain.Render(context.Background(), single{name: file, content: content}, plain.Options{Dir: path.Dir(filepath.ToSlash(name))})
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	for i := range objects {
		objects[i].File = name
	}
	for i := range problems {
		problems[i].File = name
	}
	return s.take(path.Dir(filepath.ToSlash(name)), objects, problems, nil)
}

// Err returns the problems as one error; nil if there are none.
func (s *Set) Err() error { return Join(s.Problems) }

// Join turns problems into one error; nil if there are none.
func Join(problems []manifest.Problem) error {
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = p
	}
	return errors.Join(errs...)
}

// isManifest reports whether a file of that name is read when its folder is.
func isManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

// take adds what was found in a folder.
func (s *Set) take(folder string, objects []manifest.Object, problems []manifest.Problem, err error) error {
	for range objects {
		s.folders = append(s.folders, folder)
	}
	s.Objects, s.Problems = append(s.Objects, objects...), append(s.Problems, problems...)
	return err
}
