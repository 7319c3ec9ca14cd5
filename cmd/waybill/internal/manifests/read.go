package manifests

import (
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

// Stdin is how the standard input is called in arguments and in messages.
const Stdin = "-"

// maxInput is the most bytes that are read from the standard input.
const maxInput = 64 << 20

// Set is what was read.
type Set struct {
	// Objects in the order of the arguments; File is the path as it was given.
	Objects []manifest.Object

	// Problems are files and documents that could not be used.
	Problems []manifest.Problem

	// Charts are folders that were left out because they hold a Helm chart.
	Charts []string

	stdin []byte
	lines map[place]*document
}

// Read reads files, folders and, for `-`, in. A folder is read with all that is in it: a
// kustomization is built, a chart is left out, all else are plain manifests. The error is
// for a path that is not there; what is wrong with its content is a problem.
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
	if name == Stdin {
		content, err := io.ReadAll(io.LimitReader(in, maxInput+1))
		if err != nil {
			return fmt.Errorf("read the standard input: %w", err)
		}
		if len(content) > maxInput {
			return fmt.Errorf("read the standard input: more than %d bytes", maxInput)
		}
		s.stdin = content
		return s.render(Stdin, content)
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

// render reads one file, whatever its name ends in.
func (s *Set) render(name string, content []byte) error {
	file := path.Base(filepath.ToSlash(name))
	switch {
	case name == Stdin:
		file = "stdin.yaml"
	case !isManifest(file):
		file += ".yaml"
	}
	objects, problems, err := plain.Render(single{name: file, content: content}, plain.Options{Dir: path.Dir(filepath.ToSlash(name))})
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	for i := range objects {
		objects[i].File = name
	}
	for i := range problems {
		problems[i].File = name
	}
	s.Objects, s.Problems = append(s.Objects, objects...), append(s.Problems, problems...)
	return nil
}

// Err returns what could not be used, as one error; nil where there is nothing.
func (s *Set) Err() error { return Join(s.Problems) }

// Join makes one error of problems; nil of none.
func Join(problems []manifest.Problem) error {
	errs := make([]error, len(problems))
	for i, p := range problems {
		errs[i] = p
	}
	return errors.Join(errs...)
}

// isManifest says whether a file of that name is read when its folder is.
func isManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name))
}

func (s *Set) take(objects []manifest.Object, problems []manifest.Problem, err error) error {
	s.Objects, s.Problems = append(s.Objects, objects...), append(s.Problems, problems...)
	return err
}
