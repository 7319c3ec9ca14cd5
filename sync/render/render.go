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
	"sync"

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

// result is what a folder renders to.
type result struct {
	objects  []manifest.Object
	problems []manifest.Problem
	err      error
}

// Slots bound how many folders are rendered at a time: rendering takes CPU and memory and never waits
// for others, so that more at a time would not be faster.
type Slots struct {
	free *semaphore.Weighted

	mu sync.Mutex
	// overdue are the renderings of each folder that go on though nobody waits for them any more.
	overdue map[string]overdue
}

// overdue counts renderings.
type overdue struct {
	// all of them; late are those that took too long, and not given up for another reason.
	all, late int
}

// NewSlots returns as many slots as there are processors, and at least two: a folder that holds up
// its slot must not hold up all others.
func NewSlots() *Slots {
	return &Slots{free: semaphore.NewWeighted(int64(max(2, runtime.GOMAXPROCS(0)))), overdue: make(map[string]overdue)}
}

// Folder waits for a slot and renders a folder, as Folder does. The slot is taken until the work has
// ended, even if ctx ended before. Until then the owner is refused a folder of the same path, whatever
// its revision: owner names who asks, in the whole process. So a folder that is tried again and again
// does not take all slots, and those of others are rendered, whatever they share with it.
func (s *Slots) Folder(ctx context.Context, owner string, root fs.FS, folder, ignore string) ([]manifest.Object, []manifest.Problem, error) {
	key := owner + " " + path.Clean("./"+folder)
	if err := s.refuse(key, folder); err != nil {
		return nil, nil, err
	}
	if err := s.free.Acquire(ctx, 1); err != nil {
		return nil, nil, &Error{v1alpha1.BuildFailedReason, fmt.Errorf("render %q: wait for other folders to be rendered: %w", folder, err)}
	}
	taken := &slot{of: s, key: key}
	if err := s.refuse(key, folder); err != nil {
		taken.leave()
		return nil, nil, err
	}
	return start(ctx, root, folder, ignore, taken)
}

// refuse returns an error if a rendering of a folder goes on that nobody waits for.
func (s *Slots) refuse(key, folder string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch before := s.overdue[key]; {
	case before.late > 0:
		return &Error{v1alpha1.BuildFailedReason, fmt.Errorf("render %q: the rendering before took too long and has not ended yet; split the folder", folder)}
	case before.all > 0:
		return &Error{v1alpha1.BuildFailedReason, fmt.Errorf("render %q: the rendering before has not ended yet", folder)}
	}
	return nil
}

// slot is one that is taken. A nil slot is none.
type slot struct {
	of  *Slots
	key string
	// counted is what the work counts as overdue; left: it has ended.
	counted overdue
	left    bool
}

// overdue notes that nobody waits for the work any more, and why: it took too long, or its result is
// not needed.
func (t *slot) overdue(why error) {
	if t == nil {
		return
	}
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	if t.left {
		return
	}
	t.counted.all = 1
	if errors.Is(why, context.DeadlineExceeded) {
		t.counted.late = 1
	}
	sum := t.of.overdue[t.key]
	t.of.overdue[t.key] = overdue{sum.all + t.counted.all, sum.late + t.counted.late}
}

// leave frees the slot, as the work has ended.
func (t *slot) leave() {
	if t == nil {
		return
	}
	defer t.of.free.Release(1)
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.left = true
	sum := t.of.overdue[t.key]
	if sum = (overdue{sum.all - t.counted.all, sum.late - t.counted.late}); sum.all > 0 {
		t.of.overdue[t.key] = sum
		return
	}
	delete(t.of.overdue, t.key)
}

// Folder renders a folder of the repository with the given root; empty means the root. ignore holds
// lines in the format of .gitignore, for plain manifests. Faults of single files are returned as
// problems; an error is an *Error and means that there is no result.
//
// Folder returns when ctx ends, whatever holds it up. What it was at continues in the background
// until it next looks at a file, which root may refuse by then, or is done: a kustomize build cannot
// be interrupted, and its limits bound how long it takes.
func Folder(ctx context.Context, root fs.FS, folder, ignore string) ([]manifest.Object, []manifest.Problem, error) {
	return start(ctx, root, folder, ignore, nil)
}

// start renders a folder, and leaves the slot when the work has ended, which may be after it returns.
func start(ctx context.Context, root fs.FS, folder, ignore string, taken *slot) ([]manifest.Object, []manifest.Problem, error) {
	done := make(chan result, 1)
	go func() {
		defer taken.leave()
		done <- rendered(ctx, root, folder, ignore)
	}()
	select {
	case got := <-done:
		return got.objects, got.problems, got.err
	case <-ctx.Done():
		taken.overdue(ctx.Err())
		return nil, nil, &Error{v1alpha1.BuildFailedReason, fmt.Errorf("render %q: it takes too long: %w", folder, ctx.Err())}
	}
}

// rendered renders a folder. A panic must not end the process.
func rendered(ctx context.Context, root fs.FS, folder, ignore string) (got result) {
	defer func() {
		if crash := recover(); crash != nil {
			got = result{err: &Error{v1alpha1.BuildFailedReason, fmt.Errorf("render %q: crashed: %v", folder, crash)}}
		}
	}()
	got.objects, got.problems, got.err = render(ctx, root, folder, ignore)
	return got
}

func render(ctx context.Context, root fs.FS, folder, ignore string) ([]manifest.Object, []manifest.Problem, error) {
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
		objects, problems, err := kustomize.Render(ctx, root, folder, kustomize.Options{})
		if err != nil {
			return nil, nil, &Error{v1alpha1.BuildFailedReason, fmt.Errorf("build kustomization %q: %w", folder, err)}
		}
		return objects, problems, nil
	}
	return manifests(ctx, root, folder, ignore)
}

// manifests renders the plain manifests below a folder. Folders in it that hold a kustomization are
// built.
func manifests(ctx context.Context, root fs.FS, folder, ignore string) ([]manifest.Object, []manifest.Problem, error) {
	sub, err := fs.Sub(root, folder)
	if err != nil {
		return nil, nil, &Error{v1alpha1.PathNotFoundReason, fmt.Errorf("open %q: %w", folder, err)}
	}
	build := func(dir string) ([]manifest.Object, []manifest.Problem, error) {
		return kustomize.Render(ctx, root, path.Join(folder, dir), kustomize.Options{})
	}
	objects, problems, err := plain.Render(ctx, sub, plain.Options{Dir: strings.TrimPrefix(folder, "."), Ignore: ignore, Kustomization: build})
	if err != nil {
		return nil, nil, &Error{v1alpha1.InvalidManifestReason, fmt.Errorf("read %q: %w", folder, err)}
	}
	return objects, problems, nil
}
