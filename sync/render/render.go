// Package render turns a folder of a repository into objects: with kustomize if the folder holds a
// kustomization, and as plain manifests otherwise.
package render

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"strings"

	"golang.org/x/sync/semaphore"

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

// Build builds the kustomization in a directory of the repository with the given root, as
// kustomize.Render does.
type Build func(ctx context.Context, root fs.FS, dir string) ([]manifest.Object, []manifest.Problem, error)

// buildHere builds in this process, which nothing but the end of the build can stop.
func buildHere(ctx context.Context, root fs.FS, dir string) ([]manifest.Object, []manifest.Problem, error) {
	return kustomize.Render(ctx, root, dir, kustomize.Options{})
}

// Slots bound how many folders are rendered at a time: rendering takes CPU and memory and never waits
// for others, so that more at a time would not be faster.
type Slots struct {
	free  *semaphore.Weighted
	build Build
}

// NewSlots returns as many slots as there are processors. Kustomizations are built by the given
// function, which is called without a slot, and bounds how many are built at a time itself; nil builds
// them in this process, with a slot.
func NewSlots(build Build) *Slots {
	return &Slots{free: semaphore.NewWeighted(int64(runtime.GOMAXPROCS(0))), build: build}
}

// Folder waits for a slot and renders a folder, as Folder does.
func (s *Slots) Folder(ctx context.Context, root fs.FS, folder, ignore string) ([]manifest.Object, []manifest.Problem, error) {
	if err := s.free.Acquire(ctx, 1); err != nil {
		return nil, nil, &Error{v1alpha1.BuildFailedReason, fmt.Errorf("render %q: wait for other folders to be rendered: %w", folder, err)}
	}
	defer s.free.Release(1)
	if s.build == nil {
		return Folder(ctx, root, folder, ignore)
	}
	return rendered(ctx, root, folder, ignore, s.outside)
}

// outside builds a kustomization while others may use the slot.
func (s *Slots) outside(ctx context.Context, root fs.FS, dir string) ([]manifest.Object, []manifest.Problem, error) {
	s.free.Release(1)
	defer func() { _ = s.free.Acquire(context.Background(), 1) }() // slots come free soon, and this never fails
	return s.build(ctx, root, dir)
}

// Folder renders a folder of the repository with the given root; empty means the root. ignore holds
// lines in the format of .gitignore, for plain manifests. Faults of single files are returned as
// problems; an error is an *Error and means that there is no result.
//
// A kustomization is built in this process: its author can make that take any time and memory.
func Folder(ctx context.Context, root fs.FS, folder, ignore string) ([]manifest.Object, []manifest.Problem, error) {
	return rendered(ctx, root, folder, ignore, buildHere)
}

// rendered renders a folder. A panic must not end the process.
func rendered(ctx context.Context, root fs.FS, folder, ignore string, build Build) (objects []manifest.Object, problems []manifest.Problem, err error) {
	defer func() {
		if crash := recover(); crash != nil {
			objects, problems, err = nil, nil, &Error{v1alpha1.BuildFailedReason, fmt.Errorf("render %q: crashed: %v", folder, crash)}
		}
	}()
	return render(ctx, root, folder, ignore, build)
}

func render(ctx context.Context, root fs.FS, folder, ignore string, build Build) ([]manifest.Object, []manifest.Problem, error) {
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
		return built(ctx, root, folder, build)
	}
	return manifests(ctx, root, folder, ignore, build)
}

// built builds a kustomization.
func built(ctx context.Context, root fs.FS, dir string, build Build) ([]manifest.Object, []manifest.Problem, error) {
	objects, problems, err := build(ctx, root, dir)
	if err != nil {
		return nil, nil, &Error{v1alpha1.BuildFailedReason, fmt.Errorf("build kustomization %q: %w", dir, err)}
	}
	for i := range objects {
		objects[i].Kustomization = dir
	}
	return objects, problems, nil
}

// manifests renders the plain manifests below a folder. Folders in it that hold a kustomization are
// built.
func manifests(ctx context.Context, root fs.FS, folder, ignore string, build Build) ([]manifest.Object, []manifest.Problem, error) {
	sub, err := fs.Sub(root, folder)
	if err != nil {
		return nil, nil, &Error{v1alpha1.PathNotFoundReason, fmt.Errorf("open %q: %w", folder, err)}
	}
	nested := func(dir string) ([]manifest.Object, []manifest.Problem, error) {
		return built(ctx, root, path.Join(folder, dir), build)
	}
	objects, problems, err := plain.Render(ctx, sub, plain.Options{Dir: strings.TrimPrefix(folder, "."), Ignore: ignore, Kustomization: nested})
	var known *Error
	switch {
	case errors.As(err, &known):
		return nil, nil, known
	case err != nil:
		return nil, nil, &Error{v1alpha1.InvalidManifestReason, fmt.Errorf("read %q: %w", folder, err)}
	}
	return objects, problems, nil
}
