package chart

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/ignore"
)

// Tree is a chart's directory in a snapshot of a repository.
type Tree struct {
	// Open opens the root of the repository, and returns what closes it again. The root must not
	// follow links that lead out of it, as os.DirFS does; os.Root does not. Callers of FromFS that
	// share a load share the tree of one of them, which is read even if that one has left.
	Open func(context.Context) (fs.FS, func(), error)
	// Path is the slash-separated path of the chart's directory below the root; empty for the root
	// itself.
	Path string
	// Revision identifies the content and who may read it, such as address, commit and a hash of
	// credentials: a chart of one revision and path is loaded once and remembered, and then given
	// out without Open. With an empty revision, a chart is loaded every time.
	Revision string
}

// FromFS loads a chart from a directory, as `helm package` would see it: .helmignore is obeyed, and
// dependencies come from its charts folder, from `file://` paths inside the repository, or from
// http(s):// and oci:// repositories, in the version that Chart.lock pins or else the newest that
// Chart.yaml allows. cred is sent to those repositories; leave user name and password out of it
// unless all of them may see both. It returns the error of tree.Open as it is, ErrNotFound if there
// is no chart, and otherwise the same sentinels as Get.
func (c *Cache) FromFS(ctx context.Context, tree Tree, cred Credentials) (*Chart, error) {
	dir := path.Clean(strings.Trim(tree.Path, "/"))
	if !fs.ValidPath(dir) {
		return nil, fmt.Errorf("%w: chart path %q leaves the repository", ErrInvalidReference, tree.Path)
	}
	tree.Path = dir
	if err := cred.validate(); err != nil {
		return nil, err
	}
	load := func(ctx context.Context) (*Chart, error) { return c.loadTree(ctx, tree, cred) }
	if tree.Revision == "" {
		return load(ctx)
	}
	key := c.store.key("tree", tree.Revision+"\n"+dir, cred)
	return once(ctx, &c.chartFlight, key, func(ctx context.Context) (*Chart, error) {
		if digest, ok := c.trees.Lookup(key); ok {
			if known, ok := c.charts.Lookup(digest); ok {
				return known, nil
			}
		}
		loaded, err := load(ctx)
		if err != nil {
			return nil, err
		}
		// Most commits do not change most charts: unchanged ones are shared.
		if known, ok := c.charts.Lookup(loaded.Digest); ok {
			loaded = known
		}
		c.charts.Put(loaded.Digest, loaded, loaded.size)
		c.trees.Put(key, loaded.Digest, 1)
		return loaded, nil
	})
}

func (c *Cache) loadTree(ctx context.Context, tree Tree, cred Credentials) (*Chart, error) {
	root, closeRoot, err := tree.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer closeRoot()
	r := &treeReader{cache: c, fsys: root, cred: cred, budget: newBudget(c.limits)}
	loaded, digest, err := r.load(ctx, tree.Path, 0)
	if err != nil {
		return nil, err
	}
	if err := checkInstallable(loaded); err != nil {
		return nil, err
	}
	return &Chart{Chart: loaded, Digest: "sha256:" + hex.EncodeToString(digest), size: c.limits.UnpackedBytes - r.budget.bytes + valueBytes*(c.limits.Values-r.budget.values)}, nil
}

// treeReader loads one chart with everything that it depends on.
type treeReader struct {
	cache  *Cache
	fsys   fs.FS
	cred   Credentials
	budget *budget
}

// load reads the chart in dir, completes its dependencies, and returns it with the hash of
// everything in it.
func (r *treeReader) load(ctx context.Context, dir string, depth int64) (*chart.Chart, []byte, error) {
	if depth > r.budget.limits.NestedCharts {
		return nil, nil, errTooLarge("nesting of file:// dependencies", "NestedCharts", r.budget.limits.NestedCharts)
	}
	files, err := r.readDir(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	digest := hashFiles(files)
	if files, err = unpackSubcharts(ctx, files, r.budget, 0); err != nil {
		return nil, nil, err
	}
	loaded, _, err := parse(ctx, files, r.budget)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", dir, err)
	}
	attached, err := r.attachDependencies(ctx, loaded, dir, depth)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", dir, err)
	}
	sum := hashOf(append([][]byte{digest}, attached...)...)
	return loaded, sum[:], nil
}

// readDir reads the files of a chart's directory that .helmignore does not exclude, sorted by name.
func (r *treeReader) readDir(ctx context.Context, dir string) ([]*loader.BufferedFile, error) {
	if _, err := fs.Stat(r.fsys, path.Join(dir, "Chart.yaml")); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: no Chart.yaml in the directory %q of the repository", ErrNotFound, dir)
		}
		return nil, fmt.Errorf("read Chart.yaml in %q: %w", dir, err)
	}
	rules, err := r.ignoreRules(dir)
	if err != nil {
		return nil, err
	}
	w := &treeWalk{treeReader: r, dir: dir, rules: rules}
	if err := w.walk(ctx, "."); err != nil {
		return nil, err
	}
	slices.SortFunc(w.files, func(a, b *loader.BufferedFile) int { return strings.Compare(a.Name, b.Name) })
	return w.files, nil
}

func (r *treeReader) ignoreRules(dir string) (*ignore.Rules, error) {
	rules := ignore.Empty()
	info, err := fs.Stat(r.fsys, path.Join(dir, ignore.HelmIgnore))
	var data []byte
	if err == nil {
		if info.Size() > r.budget.limits.IgnoreBytes {
			return nil, errTooLarge("size of "+ignore.HelmIgnore, "IgnoreBytes", r.budget.limits.IgnoreBytes)
		}
		data, err = fs.ReadFile(r.fsys, path.Join(dir, ignore.HelmIgnore))
	}
	switch {
	case err == nil:
		if rules, err = ignore.Parse(bytes.NewReader(data)); err != nil {
			return nil, fmt.Errorf("%w: parse %s: %w", ErrInvalidChart, ignore.HelmIgnore, err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read %s: %w", ignore.HelmIgnore, err)
	}
	rules.AddDefaults()
	return rules, nil
}

// treeWalk collects the files of one chart's directory.
type treeWalk struct {
	*treeReader
	dir   string
	rules *ignore.Rules
	files []*loader.BufferedFile
}

// walk reads the directory with the given name in the chart. Links are followed if the file system
// allows it: fs.Stat follows them, a directory entry does not.
func (w *treeWalk) walk(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if depth := int64(strings.Count(name, "/")); depth > w.budget.limits.PathDepth {
		return errTooLarge("depth of chart directory "+name, "PathDepth", w.budget.limits.PathDepth)
	}
	entries, err := fs.ReadDir(w.fsys, path.Join(w.dir, name))
	if err != nil {
		return fmt.Errorf("read chart directory %s: %w", name, err)
	}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.visit(ctx, path.Join(name, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (w *treeWalk) visit(ctx context.Context, name string) error {
	full := path.Join(w.dir, name)
	info, err := fs.Stat(w.fsys, full)
	switch {
	case w.rules.Ignore(name, found{info}):
		return nil
	case err != nil:
		return fmt.Errorf("read chart file %s: %w", name, err)
	case info.IsDir():
		return w.walk(ctx, name)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: chart file %s is a link or a special file", ErrInvalidChart, name)
	}
	f, err := w.fsys.Open(full)
	if err != nil {
		return fmt.Errorf("read chart file %s: %w", name, err)
	}
	defer func() { _ = f.Close() }()
	if err := w.budget.member(); err != nil {
		return err
	}
	data, err := readFile(f, name, info.Size(), w.budget)
	if err != nil {
		return err
	}
	w.files = append(w.files, &loader.BufferedFile{Name: name, Data: data})
	return nil
}

// found is what the rules of .helmignore see of a file. There may be nothing to see: one that is too
// large is not even in the mirror of its repository, and may be ignored all the same.
type found struct{ fs.FileInfo }

// IsDir implements fs.FileInfo.
func (f found) IsDir() bool { return f.FileInfo != nil && f.FileInfo.IsDir() }

// hashFiles hashes names and contents, in the order given.
func hashFiles(files []*loader.BufferedFile) []byte {
	parts := make([][]byte, 0, 2*len(files))
	for _, f := range files {
		parts = append(parts, []byte(f.Name), f.Data)
	}
	sum := hashOf(parts...)
	return sum[:]
}
