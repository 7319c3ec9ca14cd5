package kustomize

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"waybill.dev/waybill/sync/manifest"
)

// view is a repository as kustomize sees it: read-only, rooted at /, with reads counted and files
// inspected. It serves one build.
type view struct {
	fsys   fs.FS
	limits Limits
	// top is the kustomization that the build starts with, by the name that kustomize asks for.
	top string

	// ended returns an error once the build must end.
	ended func() error

	reads int
	bytes int64
	// generated are the files of the generators in the kustomizations that were read so far: kustomize
	// reads them later.
	generated map[string]content
	// origins says that the user, and not only we, asked for the annotations that say where an
	// object comes from.
	origins bool
	// refusal is the first reason for not building, and failure the first error that is not about
	// the repository. Kustomize loses errors, and these must not be lost.
	refusal *refusal
	failure error
}

var _ filesys.FileSystem = (*view)(nil)

// errReadOnly is the error of every attempt to write.
var errReadOnly = fmt.Errorf("the repository cannot be written: %w", fs.ErrPermission)

// Create implements filesys.FileSystem.
func (v *view) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir implements filesys.FileSystem.
func (v *view) Mkdir(string) error { return errReadOnly }

// MkdirAll implements filesys.FileSystem.
func (v *view) MkdirAll(string) error { return errReadOnly }

// RemoveAll implements filesys.FileSystem.
func (v *view) RemoveAll(string) error { return errReadOnly }

// WriteFile implements filesys.FileSystem.
func (v *view) WriteFile(string, []byte) error { return errReadOnly }

// Open implements filesys.FileSystem. Kustomize reads files as a whole, so nothing needs it.
func (v *view) Open(name string) (filesys.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: errors.ErrUnsupported}
}

// Glob implements filesys.FileSystem. Kustomize accepts no patterns in what it loads.
func (v *view) Glob(string) ([]string, error) { return nil, errors.ErrUnsupported }

// Walk implements filesys.FileSystem. Kustomize does not walk during a build.
func (v *view) Walk(string, filepath.WalkFunc) error { return errors.ErrUnsupported }

// Exists implements filesys.FileSystem.
func (v *view) Exists(name string) bool {
	_, err := v.stat(name)
	return err == nil
}

// IsDir implements filesys.FileSystem.
func (v *view) IsDir(name string) bool {
	info, err := v.stat(name)
	return err == nil && info.IsDir()
}

// ReadDir implements filesys.FileSystem.
func (v *view) ReadDir(name string) ([]string, error) {
	resolved, err := v.resolve(name)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(v.fsys, resolved)
	if err != nil {
		return nil, v.noted(err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// CleanedAbs implements filesys.FileSystem.
func (v *view) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	resolved, err := v.resolve(name)
	if err != nil {
		return "", "", err
	}
	info, err := fs.Stat(v.fsys, resolved)
	if err != nil {
		return "", "", v.noted(err)
	}
	full := path.Join("/", resolved)
	if info.IsDir() {
		return filesys.ConfirmedDir(full), "", nil
	}
	return filesys.ConfirmedDir(path.Dir(full)), path.Base(full), nil
}

// ReadFile implements filesys.FileSystem. It fails once anything was rejected: that stops the
// build.
func (v *view) ReadFile(name string) ([]byte, error) {
	if v.refusal != nil {
		return nil, v.refusal
	}
	resolved, err := v.resolve(name)
	if err != nil {
		return nil, err
	}
	content, err := v.read(resolved)
	if err != nil {
		return nil, err
	}
	if asked := clean(filepath.ToSlash(name)); isKustomizationName(asked) || isKustomizationName(resolved) {
		content, err = v.kustomization(asked, content)
	} else {
		err = v.file(asked, content)
	}
	if err != nil {
		return nil, v.refuse(err)
	}
	return content, nil
}

// file checks a file that kustomize reads.
func (v *view) file(name string, content []byte) error {
	if v.generated[name]&lines != 0 {
		if err := checkLines(name, content); err != nil {
			return err
		}
	}
	err := v.checkAliases(name, content)
	var refused *refusal
	if v.generated[name] != 0 && errors.As(err, &refused) && refused.reason != manifest.ReasonLimitExceeded {
		return nil // it need not be YAML, and if it is used elsewhere, too, kustomize says what is wrong
	}
	return err
}

// clean returns a path from the root of the repository, as it is compared.
func clean(name string) string {
	return path.Join(".", path.Join("/", name)[1:])
}

// isKustomizationName reports whether kustomize takes a file for a kustomization by its name. It asks
// for the file by that name, even if it is a symbolic link to another one.
func isKustomizationName(file string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(file))
}

func (v *view) stat(name string) (fs.FileInfo, error) {
	resolved, err := v.resolve(name)
	if err != nil {
		return nil, err
	}
	info, err := fs.Stat(v.fsys, resolved)
	return info, v.noted(err)
}

// read returns a file and counts it.
func (v *view) read(name string) ([]byte, error) {
	f, err := v.fsys.Open(name)
	if err != nil {
		return nil, v.noted(err)
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return nil, errors.Join(v.noted(err), &fs.PathError{Op: "read", Path: name, Err: errors.New("it is a directory")})
	}
	content, err := io.ReadAll(io.LimitReader(f, v.limits.FileBytes+1))
	if err != nil {
		return nil, v.noted(err)
	}
	v.reads++
	v.bytes += int64(len(content))
	switch {
	case int64(len(content)) > v.limits.FileBytes:
		return nil, v.refuse(exceeded(name, "the file is too large (limit FileBytes is %d)", v.limits.FileBytes))
	case v.reads > v.limits.Reads:
		return nil, v.refuse(exceeded(v.top, "the build reads too many files (limit Reads is %d)", v.limits.Reads))
	case v.bytes > v.limits.TotalBytes:
		return nil, v.refuse(exceeded(v.top, "the build reads too much (limit TotalBytes is %d)", v.limits.TotalBytes))
	}
	return content, nil
}

// noted keeps an error that is not the repository's fault.
func (v *view) noted(err error) error {
	if err != nil && v.failure == nil && !isContent(err) {
		v.failure = err
	}
	return err
}

// refuse keeps the first refusal.
func (v *view) refuse(err error) error {
	var refused *refusal
	if errors.As(err, &refused) && v.refusal == nil {
		v.refusal = refused
	}
	return err
}

func exceeded(file, format string, args ...any) *refusal {
	return &refusal{file: file, reason: manifest.ReasonLimitExceeded, message: fmt.Sprintf(format, args...)}
}

// resolve turns a path that kustomize uses into one of the repository, without symbolic links in
// it: kustomize resolves relative paths from the real path of a directory. No path leads out of the
// repository.
func (v *view) resolve(name string) (string, error) {
	if err := v.ended(); err != nil {
		return "", v.noted(err)
	}
	pending := strings.Split(strings.TrimLeft(filepath.ToSlash(name), "/"), "/")
	at, links := ".", 0
	for len(pending) > 0 {
		step := pending[0]
		pending = pending[1:]
		if step == ".." && at == "." {
			return "", &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("the path leads out of the repository: %w", fs.ErrPermission)}
		}
		next := path.Join(at, step)
		target, err := v.target(next)
		if err != nil {
			return "", err
		}
		if target == "" {
			at = next
			continue
		}
		if links++; links > v.limits.Links {
			return "", v.refuse(exceeded(next, "the path has too many symbolic links (limit Links is %d)", v.limits.Links))
		}
		if path.IsAbs(target) {
			return "", &fs.PathError{Op: "open", Path: next, Err: fmt.Errorf("the symbolic link is absolute: %w", fs.ErrPermission)}
		}
		pending = append(strings.Split(target, "/"), pending...)
	}
	return at, nil
}

// target returns where a symbolic link leads, or "" if it is not a link.
func (v *view) target(name string) (string, error) {
	info, err := fs.Lstat(v.fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", v.noted(err)
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return "", nil
	}
	target, err := fs.ReadLink(v.fsys, name)
	return target, v.noted(err)
}
