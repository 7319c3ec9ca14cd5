package manifests

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/kustomize"
	"waybill.dev/waybill/sync/render/plain"
)

// folder reads a folder recursively. The renderer of plain manifests decides which files count,
// including ignore files. The files are then read one by one, because a folder of a working copy
// may hold what several GitSyncs deliver, and an object that occurs twice in it is no mistake.
func (s *Set) folder(name string) error {
	repo, within, err := openRepository(name)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	defer repo.close()
	if kustomize.IsKustomization(repo.root.FS(), within) {
		return s.build(repo, name, within)
	}
	sub, err := fs.Sub(repo.root.FS(), within)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	begin := len(s.Objects)
	opened := &recorder{FS: sub}
	_, problems, err := plain.Render(context.Background(), opened, plain.Options{
		Chart: func(dir string) {
			chart := path.Join(dir, "Chart.yaml")
			opened.forget(chart)
			s.Charts = append(s.Charts, path.Join(filepath.ToSlash(name), chart))
		},
		Kustomization: func(dir string) ([]manifest.Object, []manifest.Problem, error) {
			return nil, nil, s.build(repo, path.Join(filepath.ToSlash(name), dir), path.Join(within, dir))
		},
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if err := s.files(name, opened, problems); err != nil {
		return err
	}
	s.Problems = append(s.Problems, twice(s.Objects[begin:], s.folders[begin:])...)
	return nil
}

// build adds what the kustomization in a folder makes. within is the folder in the repository.
func (s *Set) build(repo *repository, folder, within string) error {
	objects, problems, err := repo.kustomization(within)
	return s.take(folder, objects, problems, err)
}

// files reads the files of a folder. problems are those of the folder as a whole; only those that
// are not about one of the files are added.
func (s *Set) files(name string, opened *recorder, problems []manifest.Problem) error {
	names := opened.names()
	for _, p := range problems {
		if !slices.Contains(names, p.File) {
			p.File = path.Join(filepath.ToSlash(name), p.File)
			s.Problems = append(s.Problems, p)
		}
	}
	for _, file := range names {
		content, err := fs.ReadFile(opened.FS, file)
		if err != nil {
			return fmt.Errorf("read %s: %w", path.Join(name, file), err)
		}
		if err := s.render(path.Join(filepath.ToSlash(name), file), content); err != nil {
			return err
		}
	}
	return nil
}

// recorder remembers which manifests were opened.
type recorder struct {
	fs.FS

	mu     sync.Mutex
	opened map[string]bool
}

// Open opens a file, and records it if it is a manifest.
func (r *recorder) Open(name string) (fs.File, error) {
	file, err := r.FS.Open(name)
	if err == nil && isManifest(name) {
		if info, err := file.Stat(); err == nil && !info.IsDir() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.opened == nil {
				r.opened = map[string]bool{}
			}
			r.opened[name] = true
		}
	}
	return file, err
}

// forget leaves out a file that is no manifest.
func (r *recorder) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.opened, name)
}

func (r *recorder) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for name := range r.opened {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// twice reports objects that two documents describe if the folder of one is that of the other or
// above it: a GitSync of the upper folder would use neither. Objects in sibling folders are
// usually for different clusters. folders are those of the objects.
func twice(objects []manifest.Object, folders []string) []manifest.Problem {
	places := map[manifest.ID][]int{}
	for i, object := range objects {
		places[object.ID().Key()] = append(places[object.ID().Key()], i)
	}
	var problems []manifest.Problem
	for _, same := range places {
		for n, one := range same {
			for _, other := range same[n+1:] {
				if nested(folders[one], folders[other]) {
					problems = append(problems, duplicate(objects[other], cmp.Or(objects[one].Place(), folders[one])))
				}
			}
		}
	}
	slices.SortFunc(problems, func(a, b manifest.Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return problems
}

// duplicate says where else an object is.
func duplicate(object manifest.Object, elsewhere string) manifest.Problem {
	return manifest.Problem{
		ID: object.ID(), File: object.File, Line: object.Line, Reason: manifest.ReasonDuplicateObject,
		Message: fmt.Sprintf("the same object is in %s too, so that none of them is used; keep one", elsewhere),
	}
}

func nested(one, other string) bool {
	return strings.HasPrefix(one+"/", other+"/") || strings.HasPrefix(other+"/", one+"/")
}
