package plain

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"waybill.dev/waybill/api/expansion"
	"waybill.dev/waybill/sync/manifest"
)

// file reads one file and schedules its decoding.
func (r *renderer) file(name string) error {
	if err := r.ended(); err != nil {
		return err
	}
	content, err := r.content(name)
	if content == nil || err != nil {
		return err
	}
	documents := yamlDocuments
	if path.Ext(name) == ".json" {
		documents = jsonDocuments
	}
	out := &result{}
	r.results = append(r.results, out)
	r.decoders.Go(func() error {
		for d := range documents(content, r.limits) {
			if r.ended() != nil {
				return nil
			}
			if err := r.count(d); err != nil {
				return err
			}
			objects, problems := d.objects(r.place(name))
			out.objects = append(out.objects, objects...)
			out.problems = append(out.problems, problems...)
		}
		return nil
	})
	return nil
}

// count adds the values of a document to those of all documents: each may hold little, and be one of
// many.
func (r *renderer) count(d document) error {
	var size expansion.Size
	size.Add(d.value)
	if r.values.Add(int64(size.Values)) > int64(r.limits.Values) {
		return fmt.Errorf("the manifests have too many values together (limit Values is %d)", r.limits.Values)
	}
	return nil
}

// content reads a file; nil means that it became a Problem.
func (r *renderer) content(name string) ([]byte, error) {
	f, err := r.fsys.Open(name)
	if err != nil {
		return nil, r.unreadable(name, err)
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, r.limits.FileBytes+1))
	if err != nil {
		return nil, r.unreadable(name, err)
	}
	if int64(len(content)) > r.limits.FileBytes {
		r.problem(name, manifest.ReasonLimitExceeded, fmt.Sprintf("the file is too large (limit FileBytes is %d)", r.limits.FileBytes))
		return nil, nil
	}
	r.read += int64(len(content))
	if r.read > r.limits.TotalBytes {
		return nil, fmt.Errorf("the files are too large together (limit TotalBytes is %d)", r.limits.TotalBytes)
	}
	return content, nil
}

// unreadable turns an error that is the repository's fault into a Problem and returns any other.
func (r *renderer) unreadable(name string, err error) error {
	if !isContent(err) {
		return err
	}
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	r.problem(name, manifest.ReasonUnreadableFile, fmt.Sprintf("cannot be read: %s", err))
	return nil
}

// isContent reports whether reading again gives the same error.
func isContent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) || errors.Is(err, fs.ErrPermission)
}
