package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
)

// budget is how much one chart may still take, shared by all the charts that are packed inside it.
type budget struct {
	limits Limits
	bytes  int64
	files  int64
	values int64
}

func newBudget(limits Limits) *budget {
	return &budget{limits: limits, bytes: limits.UnpackedBytes, files: limits.Files, values: limits.Values}
}

// member deducts one file, directory or other member of an archive from the budget.
func (b *budget) member() error {
	if b.files--; b.files < 0 {
		return errTooLarge("number of files in the chart", "Files", b.limits.Files)
	}
	return nil
}

// file deducts the size of one file from the budget. The size is the one that a header claims; read enforces
// it.
func (b *budget) file(name string, size int64) error {
	if size > b.limits.FileBytes && !isNestedArchive(name) {
		return errTooLarge("size of chart file "+name, "FileBytes", b.limits.FileBytes)
	}
	if int64(strings.Count(name, "/")) > b.limits.PathDepth {
		return errTooLarge("depth of chart file "+name, "PathDepth", b.limits.PathDepth)
	}
	if b.bytes -= size; b.bytes < 0 {
		return errTooLarge("size of the unpacked chart", "UnpackedBytes", b.limits.UnpackedBytes)
	}
	return nil
}

// unpack reads a chart archive, and the archives in its charts folder, into files below the chart's
// own folder, until ctx ends. Helm's own reader bounds each archive but not the archives inside
// archives, and reads links as empty files.
func unpack(ctx context.Context, r io.Reader, b *budget) ([]*loader.BufferedFile, error) {
	return unpackNested(ctx, r, b, 0)
}

func unpackNested(ctx context.Context, r io.Reader, b *budget, depth int64) ([]*loader.BufferedFile, error) {
	if depth > b.limits.NestedCharts {
		return nil, errTooLarge("nesting of charts inside charts", "NestedCharts", b.limits.NestedCharts)
	}
	zipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, invalidArchive(err)
	}
	var files []*loader.BufferedFile
	archive := tar.NewReader(zipped)
	for {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read archive: %w", err)
		}
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, invalidArchive(err)
		}
		if err := b.member(); err != nil {
			return nil, err
		}
		name, err := memberName(header)
		if err != nil {
			return nil, err
		}
		if name == "" {
			continue
		}
		data, err := readFile(archive, name, header.Size, b)
		if err != nil {
			return nil, err
		}
		files = append(files, &loader.BufferedFile{Name: name, Data: data})
	}
	return unpackSubcharts(ctx, files, b, depth)
}

// memberName returns the path in the chart of an archive member, or "" if the member is not a file.
// All members lie in one folder, named like the chart, which is stripped.
func memberName(header *tar.Header) (string, error) {
	switch header.Typeflag {
	case tar.TypeReg:
	case tar.TypeDir, tar.TypeXGlobalHeader, tar.TypeXHeader:
		return "", nil
	default:
		return "", fmt.Errorf("%w: archive member %q is a link or a special file", ErrInvalidChart, header.Name)
	}
	full := strings.ReplaceAll(header.Name, `\`, "/")
	if path.IsAbs(full) || len(full) > 1 && full[1] == ':' {
		return "", fmt.Errorf("%w: archive member %q has an absolute path", ErrInvalidChart, header.Name)
	}
	full = strings.TrimPrefix(full, "./")
	for _, part := range strings.Split(full, "/") {
		if part == ".." {
			return "", fmt.Errorf("%w: archive member %q leaves the archive", ErrInvalidChart, header.Name)
		}
	}
	_, name, ok := strings.Cut(full, "/")
	if name = path.Clean(name); !ok || name == "." || name[0] == '/' {
		return "", fmt.Errorf("%w: archive member %q is not in the folder of a chart", ErrInvalidChart, header.Name)
	}
	return name, nil
}

// readFile reads one file of the claimed size within the budget.
func readFile(r io.Reader, name string, size int64, b *budget) ([]byte, error) {
	if err := b.file(name, size); err != nil {
		return nil, err
	}
	data := make([]byte, 0, size)
	buffer := bytes.NewBuffer(data)
	n, err := io.Copy(buffer, io.LimitReader(r, size+1))
	if err != nil {
		return nil, fmt.Errorf("%w: read chart file %s: %w", ErrInvalidChart, name, err)
	}
	if n > size {
		return nil, fmt.Errorf("%w: chart file %s is larger than it says", ErrInvalidChart, name)
	}
	return bytes.TrimPrefix(buffer.Bytes(), utf8BOM), nil
}

var utf8BOM = []byte{0xEF, 0xBB, 0xBF}

// unpackSubcharts replaces every archive in the charts folder by its files, so that the budget sees
// them all.
func unpackSubcharts(ctx context.Context, files []*loader.BufferedFile, b *budget, depth int64) ([]*loader.BufferedFile, error) {
	flat := make([]*loader.BufferedFile, 0, len(files))
	for _, f := range files {
		if !isNestedArchive(f.Name) {
			flat = append(flat, f)
			continue
		}
		nested, err := unpackNested(ctx, bytes.NewReader(f.Data), b, depth+1)
		if err != nil {
			return nil, fmt.Errorf("in %s: %w", f.Name, err)
		}
		folder := strings.TrimSuffix(f.Name, ".tgz") + ".unpacked/"
		for _, n := range nested {
			n.Name = folder + n.Name
			flat = append(flat, n)
		}
	}
	return flat, nil
}

// isNestedArchive reports whether a chart's file is the archive of a subchart. Helm ignores names
// that begin with _ or a dot.
func isNestedArchive(name string) bool {
	dir, base := path.Split(name)
	return dir == "charts/" && path.Ext(base) == ".tgz" && base[0] != '.' && base[0] != '_'
}

func invalidArchive(err error) error {
	return fmt.Errorf("%w: read archive: %w", ErrInvalidChart, err)
}
