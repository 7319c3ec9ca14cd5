package plain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/sync/manifest"
)

// Options set what to render and how much of it to accept.
type Options struct {
	// Dir is the path of the file system within the source; it is put before the file names in the
	// results. Empty for the root.
	Dir string
	// Ignore holds lines in the format of .gitignore, relative to the root of the file system. They
	// come after, and win over, the built-in patterns and the files named .waybillignore, which
	// work like .gitignore in the directory that holds them. The built-in patterns are the names of
	// version control, continuous integration and image files. A line that begins with ! includes a
	// file again.
	Ignore string
	// Kustomization renders a directory below the root that holds a kustomization, given its
	// slash-separated path in the file system. If it is nil, such a directory is a Problem.
	Kustomization func(dir string) ([]manifest.Object, []manifest.Problem, error)
	// Chart is called with a directory that holds a Helm chart, of which nothing is rendered. If it is
	// nil, such a directory is a Problem.
	Chart func(dir string)
	// Limits bound what is accepted; zero fields take the default.
	Limits Limits
}

// Render returns the objects in all files named *.yaml, *.yml and *.json, recursively, in the order
// of their paths, and a Problem for everything that could not be used: syntax errors, duplicate
// keys, documents that are not Kubernetes objects, Helm charts, and objects that two documents describe, of
// which neither is returned. Empty documents are skipped, and lists are split into their
// items.
//
// The error is for faults that leave the whole result in doubt: a file system that cannot be read
// now (as opposed to a file that does not exist, that the file system refuses as invalid, or that
// may not be read: those are Problems), more objects or bytes in total than allowed, or a ctx that
// has ended, which is checked before each directory, file and document.
func Render(ctx context.Context, fsys fs.FS, opts Options) ([]manifest.Object, []manifest.Problem, error) {
	r := &renderer{ended: ctx.Err, fsys: fsys, opts: opts, limits: opts.Limits.orDefault(), ignore: newIgnorer(opts.Ignore)}
	r.decoders.SetLimit(runtime.GOMAXPROCS(0))
	err := r.directory(".", 0)
	if err = errors.Join(err, r.decoders.Wait(), ctx.Err()); err != nil {
		return nil, nil, fmt.Errorf("render manifests: %w", err)
	}
	var objects []manifest.Object
	var problems []manifest.Problem
	for _, result := range r.results {
		objects = append(objects, result.objects...)
		problems = append(problems, result.problems...)
	}
	if len(objects) > r.limits.Objects {
		return nil, nil, fmt.Errorf("render manifests: too many objects (limit Objects is %d)", r.limits.Objects)
	}
	objects, duplicates := manifest.Unique(objects)
	return objects, append(problems, duplicates...), nil
}

// renderer is the state of one Render call: one goroutine walks and reads, and as many as there are
// processors decode, since that is what takes the time.
type renderer struct {
	// ended returns an error once rendering must end.
	ended  func() error
	fsys   fs.FS
	opts   Options
	limits Limits
	ignore *ignorer

	// read is the number of bytes read so far, and ignored those of ignore files.
	read, ignored int64
	// values is the number of values in the documents that were decoded so far.
	values   atomic.Int64
	decoders errgroup.Group
	// results are in the order of the files.
	results []*result
}

// result is the result of one file, or of one kustomization.
type result struct {
	objects  []manifest.Object
	problems []manifest.Problem
}

// directory renders everything below a directory.
func (r *renderer) directory(dir string, depth int) error {
	if err := r.ended(); err != nil {
		return err
	}
	if depth > r.limits.Depth {
		r.problem(dir, manifest.ReasonLimitExceeded,
			fmt.Sprintf("directories are nested too deep (limit Depth is %d)", r.limits.Depth))
		return nil
	}
	entries, err := fs.ReadDir(r.fsys, dir)
	switch {
	case err != nil && depth == 0:
		return err
	case err != nil:
		return r.unreadable(dir, err)
	}
	if ok, err := r.readIgnoreFile(dir, entries); !ok || err != nil {
		return err
	}
	if depth > 0 && holdsKustomization(entries) {
		return r.kustomization(dir)
	}
	if ok, err := r.chart(dir, entries); ok || err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if r.ignore.match(name, e.IsDir()) {
			continue
		}
		if err := r.entry(name, e, depth); err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) entry(name string, e fs.DirEntry, depth int) error {
	switch {
	case e.IsDir():
		return r.directory(name, depth+1)
	case e.Type()&fs.ModeSymlink != 0:
		return r.link(name)
	case e.Type().IsRegular() && isManifest(name):
		return r.file(name)
	}
	return nil
}

// link renders the file that a symbolic link leads to. Links to directories are not followed: their
// content would be rendered twice, or without end.
func (r *renderer) link(name string) error {
	info, err := fs.Stat(r.fsys, name)
	if err != nil {
		if !isManifest(name) && isContent(err) {
			return nil
		}
		return r.unreadable(name, err)
	}
	if info.IsDir() {
		r.problem(name, manifest.ReasonUnreadableFile,
			"a symbolic link to a directory is not followed; add it to "+ignoreFile+", or use a kustomization that names the directory")
		return nil
	}
	if !isManifest(name) {
		return nil
	}
	return r.file(name)
}

// kustomization renders a directory that holds a kustomization.
func (r *renderer) kustomization(dir string) error {
	if r.opts.Kustomization == nil {
		r.problem(dir, manifest.ReasonInvalidManifest, "the directory is a kustomization among plain manifests; "+
			"point a source of its own at it, or add it to "+ignoreFile)
		return nil
	}
	objects, problems, err := r.opts.Kustomization(dir)
	if err != nil {
		return err
	}
	r.results = append(r.results, &result{objects: objects, problems: problems})
	return nil
}

// problem records a fault of a file or directory as a whole.
func (r *renderer) problem(name, reason, message string) {
	r.results = append(r.results, &result{problems: []manifest.Problem{{
		File: r.place(name), Reason: reason, Message: message,
	}}})
}

// place returns the name of a file within the source.
func (r *renderer) place(name string) string {
	return path.Join(r.opts.Dir, name)
}

// isManifest reports whether a file holds manifests, by its name.
func isManifest(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}

// holdsKustomization reports whether a directory is for kustomize.
func holdsKustomization(entries []fs.DirEntry) bool {
	for _, e := range entries {
		switch e.Name() {
		case "kustomization.yaml", "kustomization.yml", "Kustomization":
			return !e.IsDir()
		}
	}
	return false
}
