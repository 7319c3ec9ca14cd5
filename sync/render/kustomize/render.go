package kustomize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"

	"waybill.dev/waybill/sync/manifest"
)

// Options bound a build.
type Options struct {
	// Limits bound what is accepted; zero fields take the default.
	Limits Limits
}

// IsKustomization reports whether a directory of the repository holds a kustomization: one of the
// files kustomization.yaml, kustomization.yml and Kustomization.
func IsKustomization(fsys fs.FS, dir string) bool {
	return File(fsys, path.Clean(dir)) != ""
}

// File returns the path of the kustomization in a directory of the repository, or "" if there is none.
func File(fsys fs.FS, dir string) string {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		file := path.Join(dir, name)
		if info, err := fs.Stat(fsys, file); err == nil && !info.IsDir() {
			return file
		}
	}
	return ""
}

// Render builds the kustomization in a directory of the repository whose root is fsys. It returns
// the objects in kustomize's order, each with the file that it comes from, but without a line. A
// kustomization that does not build is one Problem, and nothing is rendered: kustomize has no
// partial results.
//
// The error is for faults that leave the result in doubt, above all a file system that cannot be
// read now, and for a ctx that has ended, which is checked before each file: a build cannot be
// interrupted. Render may be called concurrently.
func Render(ctx context.Context, fsys fs.FS, dir string, opts Options) ([]manifest.Object, []manifest.Problem, error) {
	view := &view{fsys: fsys, limits: opts.Limits.orDefault(), ended: ctx.Err, generated: make(map[string]content)}
	// The real path of the directory: kustomize resolves relative paths from there.
	dir, err := view.resolve(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("render kustomization: %w", err)
	}
	file := File(fsys, dir)
	if file == "" {
		return nil, nil, fmt.Errorf("render kustomization: no kustomization in %q: %w", dir, fs.ErrNotExist)
	}
	view.top = file
	built, err := build(view, dir)
	if failed := cmp.Or(view.failure, ctx.Err()); failed != nil {
		return nil, nil, fmt.Errorf("render kustomization: %w", failed)
	}
	var refused *refusal
	switch {
	case view.refusal != nil:
		refused = view.refusal
	case err != nil:
		refused = &refusal{file: file, reason: manifest.ReasonBuildFailed, message: tidy(err)}
	default:
		objects, problems := convert(built, view)
		return objects, problems, nil
	}
	return nil, []manifest.Problem{refused.problem()}, nil
}

// build runs kustomize. It is known to panic on some malformed inputs, which must not crash the
// process.
func build(view *view, dir string) (built resmap.ResMap, err error) {
	defer func() {
		if crash := recover(); crash != nil {
			err = fmt.Errorf("kustomize crashed: %v", crash)
		}
	}()
	if err := prepare(); err != nil {
		return nil, err
	}
	return krusty.MakeKustomizer(&krusty.Options{
		Reorder: krusty.ReorderOptionNone,
		// The view decides what may be loaded: anything in the repository.
		LoadRestrictions: types.LoadRestrictionsNone,
		PluginConfig:     types.DisabledPluginConfig(),
	}).Run(view, path.Join("/", dir))
}

// refusal is why a kustomization is not built.
type refusal struct {
	file    string
	line    int
	reason  string
	message string
}

func (r *refusal) Error() string { return r.message }

func (r *refusal) problem() manifest.Problem {
	return manifest.Problem{File: r.file, Line: r.line, Reason: r.reason, Message: r.message}
}

// isContent reports whether an error is the repository's fault: reading again gives the same error.
func isContent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) || errors.Is(err, fs.ErrPermission)
}
