package manifests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render"
	"waybill.dev/waybill/sync/render/kustomize"
)

// WorkingCopy returns the absolute path of the working copy that a folder is in, and the
// slash-separated path of the folder within it: a kustomization or a chart may refer to folders
// beside it. Outside of a working copy, it returns the folder only.
func WorkingCopy(folder string) (dir, within string, err error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return "", "", err
	}
	dir = absolute
	for parent := absolute; ; parent = filepath.Dir(parent) {
		if _, err := os.Stat(filepath.Join(parent, ".git")); err == nil {
			dir = parent
			break
		}
		if parent == filepath.Dir(parent) {
			break
		}
	}
	within, err = filepath.Rel(dir, absolute)
	return dir, filepath.ToSlash(within), err
}

// repository is an open working copy. Links do not lead out of it.
type repository struct {
	root *os.Root
	// base is the folder that file names are relative to; if it is empty, they are absolute.
	base string
}

// openRepository opens the working copy of a folder, and returns the path of the folder within it.
func openRepository(folder string) (r *repository, within string, err error) {
	dir, within, err := WorkingCopy(folder)
	if err != nil {
		return nil, "", err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", err
	}
	r = &repository{root: root}
	if !filepath.IsAbs(folder) {
		if r.base, err = filepath.Abs("."); err != nil {
			return nil, "", err
		}
	}
	return r, within, nil
}

func (r *repository) close() { _ = r.root.Close() } // nothing was written

// kustomization builds a folder of the repository.
func (r *repository) kustomization(within string) ([]manifest.Object, []manifest.Problem, error) {
	objects, problems, err := kustomize.Render(context.Background(), r.root.FS(), within, kustomize.Options{})
	r.locate(objects, problems)
	return objects, problems, err
}

// locate names files as seen from here.
func (r *repository) locate(objects []manifest.Object, problems []manifest.Problem) {
	for i := range objects {
		objects[i].File = r.path(objects[i].File)
	}
	for i := range problems {
		problems[i].File = r.path(problems[i].File)
	}
}

// Folder reads a local folder exactly as a GitSync reads that of a repository, of which the folder
// may be a working copy. ignore holds lines in the format of .gitignore. It returns an error if
// there is no such folder or its kustomization cannot be built; other faults are problems.
func Folder(name, ignore string) ([]manifest.Object, []manifest.Problem, error) {
	repo, within, err := openRepository(name)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer repo.close()
	objects, problems, err := render.Folder(context.Background(), repo.root.FS(), within, ignore)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", name, err)
	}
	repo.locate(objects, problems)
	return objects, problems, nil
}

// path returns the path of a repository's file as seen from here.
func (r *repository) path(file string) string {
	if file == "" {
		return ""
	}
	full := filepath.Join(r.root.Name(), filepath.FromSlash(file))
	if relative, err := filepath.Rel(r.base, full); r.base != "" && err == nil {
		full = relative
	}
	return filepath.ToSlash(full)
}
