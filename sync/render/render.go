// Package render turns a folder of a repository into objects: with kustomize if the folder holds a
// kustomization, and as plain manifests otherwise.
package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/kustomize"
	"waybill.dev/waybill/sync/render/plain"
)

// Error is the error of a folder as a whole, with the reason for conditions: PathNotFound,
// BuildFailed or InvalidManifest.
type Error struct {
	Reason string
	Err    error
}

// Error returns the text of the error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *Error) Unwrap() error { return e.Err }

// Folder renders a folder of the repository with the given root; empty means the root. ignore holds
// lines in the format of .gitignore, for plain manifests. Faults of single files are returned as
// problems; an error is an *Error and means that there is no result.
func Folder(root fs.FS, folder, ignore string) ([]manifest.Object, []manifest.Problem, error) {
	folder = path.Clean("./" + folder)
	info, err := fs.Stat(root, folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, &Error{v1alpha1.PathNotFoundReason, fmt.Errorf("the repository has no folder %q", folder)}
	case err != nil:
		return nil, nil, &Error{v1alpha1.PathNotFoundReason, fmt.Errorf("open %q: %w", folder, err)}
	case !info.IsDir():
		return nil, nil, &Error{v1alpha1.PathNotFoundReason, fmt.Errorf("%q is a file: name the folder that holds it", folder)}
	}
	if kustomize.IsKustomization(root, folder) {
		objects, problems, err := kustomize.Render(root, folder, kustomize.Options{})
		if err != nil {
			return nil, nil, &Error{v1alpha1.BuildFailedReason, fmt.Errorf("build kustomization %q: %w", folder, err)}
		}
		return objects, problems, nil
	}
	return manifests(root, folder, ignore)
}

// manifests renders the plain manifests below a folder. Folders in it that hold a kustomization are
// built.
func manifests(root fs.FS, folder, ignore string) ([]manifest.Object, []manifest.Problem, error) {
	sub, err := fs.Sub(root, folder)
	if err != nil {
		return nil, nil, &Error{v1alpha1.PathNotFoundReason, fmt.Errorf("open %q: %w", folder, err)}
	}
	build := func(dir string) ([]manifest.Object, []manifest.Problem, error) {
		return kustomize.Render(root, path.Join(folder, dir), kustomize.Options{})
	}
	objects, problems, err := plain.Render(sub, plain.Options{Dir: strings.TrimPrefix(folder, "."), Ignore: ignore, Kustomization: build})
	if err != nil {
		return nil, nil, &Error{v1alpha1.InvalidManifestReason, fmt.Errorf("read %q: %w", folder, err)}
	}
	return objects, problems, nil
}
