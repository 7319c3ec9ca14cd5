package chart_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/chart"
)

func openRepo(t *testing.T) fs.FS {
	t.Helper()
	root, err := os.OpenRoot("testdata/repo")
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root.FS()
}

// K54
func TestFromFS_readsAChartAsHelmPackagesIt(t *testing.T) {
	got, err := newCache(t).FromFS(t.Context(), chart.Tree{Open: opened(openRepo(t)), Path: "charts/web"}, chart.Credentials{})
	require.NoError(t, err)
	assert.Equal(t, "web", got.Name())
	assert.Equal(t, map[string]any{"replicas": float64(1)}, got.Values)
	assert.ElementsMatch(t, []string{"templates/configmap.yaml", ".helmignore"}, templateNames(got), ".helmignore leaves out notes.txt")
}

// K54
func TestFromFS_completesDependenciesByPath(t *testing.T) {
	got, err := newCache(t).FromFS(t.Context(), chart.Tree{Open: opened(openRepo(t)), Path: "/charts/umbrella/"}, chart.Credentials{})
	require.NoError(t, err)
	var names []string
	for _, dep := range got.Dependencies() {
		names = append(names, dep.Name()+" "+dep.Metadata.Version)
		assert.Equal(t, got.Chart, dep.Parent())
	}
	assert.ElementsMatch(t, []string{"web 1.2.3", "base 0.4.0"}, names)
}

func TestFromFS_digestFollowsContent(t *testing.T) {
	tree := func(replicas string) fstest.MapFS {
		return fstest.MapFS{
			"a/Chart.yaml":  {Data: []byte(chartYAML("a", "1.0.0") + "dependencies: [{name: b, version: 1.0.0, repository: 'file://../b'}]\n")},
			"b/Chart.yaml":  {Data: []byte(chartYAML("b", "1.0.0"))},
			"b/values.yaml": {Data: []byte("replicas: " + replicas)},
			"other":         {Data: []byte(replicas)},
		}
	}
	digest := func(fsys fs.FS, revision string, cache *chart.Cache) string {
		got, err := cache.FromFS(t.Context(), chart.Tree{Open: opened(fsys), Path: "a", Revision: revision}, chart.Credentials{})
		require.NoError(t, err)
		return got.Digest
	}
	one := digest(tree("1"), "", newCache(t))
	two := tree("1")
	two["other"].Data = []byte("changed")
	assert.Equal(t, one, digest(two, "", newCache(t)), "a commit that leaves the chart alone is no change")
	assert.NotEqual(t, one, digest(tree("2"), "", newCache(t)), "a dependency is part of the chart")

	cache := newCache(t)
	assert.Equal(t, one, digest(tree("1"), "repo@1", cache))
	assert.Equal(t, one, digest(fstest.MapFS{}, "repo@1", cache), "a revision is read once")
}

// K54
func TestFromFS_fetchesDependenciesFromRepositories(t *testing.T) {
	repo := newRepository(t, httptest.NewServer)
	for _, v := range []string{"1.0.0", "1.4.0", "2.0.0", "1.5.0-rc.1"} {
		repo.add("db", v, chartArchive(t, "db", v))
	}
	parent := chartYAML("a", "1.0.0") + "dependencies: [{name: db, version: ^1.0.0, repository: '" + repo.URL + "'}]\n"
	lock := "dependencies: [{name: db, version: 1.0.0, repository: '" + repo.URL + "'}]\ndigest: x\ngenerated: 2026-01-01T00:00:00Z\n"
	vendoredDB := func(version string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(chartYAML("db", version))} }
	cases := map[string]struct {
		reason string
		tree   fstest.MapFS
		want   string
		asks   bool
	}{
		"Newest":         {"without a lock the newest that the range allows", fstest.MapFS{"Chart.yaml": {Data: []byte(parent)}}, "1.4.0", true},
		"Locked":         {"Chart.lock pins", fstest.MapFS{"Chart.yaml": {Data: []byte(parent)}, "Chart.lock": {Data: []byte(lock)}}, "1.0.0", true},
		"Vendored":       {"what lies in the charts folder is used", fstest.MapFS{"Chart.yaml": {Data: []byte(parent)}, "charts/db/Chart.yaml": vendoredDB("1.1.0")}, "1.1.0", false},
		"VendoredUnfit":  {"but not when the range forbids it", fstest.MapFS{"Chart.yaml": {Data: []byte(parent)}, "charts/db/Chart.yaml": vendoredDB("3.0.0")}, "1.4.0", true},
		"VendoredPacked": {"packed charts count", fstest.MapFS{"Chart.yaml": {Data: []byte(parent)}, "charts/db-1.2.0.tgz": {Data: chartArchive(t, "db", "1.2.0")}}, "1.2.0", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			repo.asked()
			got, err := newCache(t).FromFS(t.Context(), chart.Tree{Open: opened(tc.tree)}, chart.Credentials{})
			require.NoError(t, err)
			require.Len(t, got.Dependencies(), 1)
			assert.Equal(t, tc.want, got.Dependencies()[0].Metadata.Version, tc.reason)
			assert.Equal(t, tc.asks, len(repo.asked()) > 0, tc.reason)
		})
	}
}

// K54
func TestFromFS_namesWhatIsWrong(t *testing.T) {
	limits := chart.DefaultLimits()
	limits.Files, limits.PathDepth, limits.NestedCharts, limits.FileBytes = 6, 3, 3, 1000
	dep := func(repository string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(chartYAML("a", "1.0.0") + "dependencies: [{name: b, version: 1.x, repository: '" + repository + "'}]\n")}
	}
	plain := &fstest.MapFile{Data: []byte(chartYAML("a", "1.0.0"))}
	cases := map[string]struct {
		tree fstest.MapFS
		path string
		is   error
		want string
	}{
		"NoChart":       {fstest.MapFS{"readme": plain}, "a", chart.ErrNotFound, `no Chart.yaml in the directory "a"`},
		"Escape":        {fstest.MapFS{"Chart.yaml": plain}, "../a", chart.ErrInvalidReference, "leaves the repository"},
		"DepEscape":     {fstest.MapFS{"a/Chart.yaml": dep("file://../../b")}, "a", chart.ErrInvalidChart, "leaves the repository"},
		"DepAbsolute":   {fstest.MapFS{"a/Chart.yaml": dep("file:///b")}, "a", chart.ErrInvalidChart, "leaves the repository"},
		"DepMissing":    {fstest.MapFS{"a/Chart.yaml": dep("file://../b")}, "a", chart.ErrInvalidChart, "dependency b: invalid chart: file://../b"},
		"DepOther":      {fstest.MapFS{"a/Chart.yaml": dep("file://../b"), "b/Chart.yaml": plain}, "a", chart.ErrInvalidChart, "holds a 1.0.0, which is not b 1.x"},
		"DepCycle":      {fstest.MapFS{"a/Chart.yaml": dep("file://.")}, "a", chart.ErrInvalidChart, "(NestedCharts)"},
		"DepNowhere":    {fstest.MapFS{"Chart.yaml": dep("")}, "", chart.ErrInvalidChart, "names no repository"},
		"DepAlias":      {fstest.MapFS{"Chart.yaml": dep("@stable")}, "", chart.ErrInvalidChart, "is an alias in a local Helm configuration"},
		"DepScheme":     {fstest.MapFS{"Chart.yaml": dep("ftp://host")}, "", chart.ErrInvalidReference, "must begin with"},
		"BadRange":      {fstest.MapFS{"Chart.yaml": {Data: []byte(chartYAML("a", "one"))}}, "", chart.ErrInvalidChart, "version"},
		"Library":       {fstest.MapFS{"Chart.yaml": {Data: []byte(chartYAML("a", "1.0.0") + "type: library")}}, "", chart.ErrInvalidChart, "library chart"},
		"ManyFiles":     {fstest.MapFS{"Chart.yaml": plain, "1": plain, "2": plain, "3": plain, "4": plain, "5": plain, "6": plain}, "", chart.ErrInvalidChart, "(Files)"},
		"Deep":          {fstest.MapFS{"Chart.yaml": plain, "1/2/3/4/5/6": plain}, "", chart.ErrInvalidChart, "(PathDepth)"},
		"BigFile":       {fstest.MapFS{"Chart.yaml": plain, "big": {Data: make([]byte, 1001)}}, "", chart.ErrInvalidChart, "(FileBytes)"},
		"BadHelmignore": {fstest.MapFS{"Chart.yaml": plain, ".helmignore": {Data: []byte("a[")}}, "", chart.ErrInvalidChart, "parse .helmignore"},
		"Device":        {fstest.MapFS{"Chart.yaml": plain, "dev": {Mode: fs.ModeDevice}}, "", chart.ErrInvalidChart, "special file"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := newCache(t, chart.WithLimits(limits)).FromFS(t.Context(), chart.Tree{Open: opened(tc.tree), Path: tc.path}, chart.Credentials{})
			require.ErrorIs(t, err, tc.is)
			assert.Contains(t, err.Error(), tc.want)
		})
	}
}

// leftOut is the mirror of a repository whose server has left the largest files out.
type leftOut struct {
	fstest.MapFS
	largest string
}

var errTooLarge = errors.New("the file is too large")

func (l leftOut) Stat(name string) (fs.FileInfo, error) {
	if name == l.largest {
		return nil, errTooLarge
	}
	return l.MapFS.Stat(name)
}

// K54: what Helm does not package may be of any size.
func TestFromFS_ignoredFilesMayBeLarge(t *testing.T) {
	cases := map[string]struct {
		reason, rules string
		loads         bool
	}{
		"Named":      {"a demo beside the chart", "demo.mp4", true},
		"Pattern":    {"as most write it", "*.mp4", true},
		"OthersOnly": {"a rule for folders and one for another file", "demo.mp4/\ndemo.avi", false},
		"Package":    {"it is part of the chart", "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{
				"a/Chart.yaml":  {Data: []byte(chartYAML("a", "1.0.0"))},
				"a/.helmignore": {Data: []byte(tc.rules)},
				"a/demo.mp4":    {Data: []byte("x")},
			}
			tree := chart.Tree{Open: opened(leftOut{files, "a/demo.mp4"}), Path: "a"}
			got, err := newCache(t).FromFS(t.Context(), tree, chart.Credentials{})
			if !tc.loads {
				require.ErrorIs(t, err, errTooLarge, tc.reason)
				assert.ErrorContains(t, err, "demo.mp4")
				return
			}
			require.NoError(t, err, tc.reason)
			assert.Equal(t, []string{".helmignore"}, templateNames(got))
		})
	}
}

// A link that the file system resolves inside the repository is a file; one that leads out is an error.
func TestFromFS_linksStayInside(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(dir+"/repo/a/templates", 0o755))
	require.NoError(t, os.WriteFile(dir+"/repo/a/Chart.yaml", []byte(chartYAML("a", "1.0.0")), 0o600))
	require.NoError(t, os.WriteFile(dir+"/repo/shared.yaml", []byte("kind: ConfigMap"), 0o600))
	require.NoError(t, os.WriteFile(dir+"/outside.yaml", []byte("kind: Secret"), 0o600))
	require.NoError(t, os.Symlink("../../shared.yaml", dir+"/repo/a/templates/x.yaml"))
	root, err := os.OpenRoot(dir + "/repo")
	require.NoError(t, err)
	defer func() { _ = root.Close() }()

	got, err := newCache(t).FromFS(t.Context(), chart.Tree{Open: opened(root.FS()), Path: "a"}, chart.Credentials{})
	require.NoError(t, err)
	require.Len(t, got.Templates, 1)
	assert.Equal(t, "kind: ConfigMap", string(got.Templates[0].Data))

	require.NoError(t, os.Symlink("../../../outside.yaml", dir+"/repo/a/templates/y.yaml"))
	_, err = newCache(t).FromFS(t.Context(), chart.Tree{Open: opened(root.FS()), Path: "a"}, chart.Credentials{})
	require.Error(t, err)
	assert.Contains(t, err.Error(), "templates/y.yaml")
}

// closable is a tree that cannot be read once it is closed.
type closable struct {
	fs.FS
	closed atomic.Bool
}

func (c *closable) Open(name string) (fs.File, error) {
	if c.closed.Load() {
		return nil, fs.ErrClosed
	}
	return c.FS.Open(name)
}

// Two clusters install the same version; the first gives up while a dependency is being fetched.
func TestFromFS_callerWhoLeavesDoesNotCloseTheTreeOfOthers(t *testing.T) {
	repo := newRepository(t, httptest.NewServer)
	repo.add("db", "1.0.0", chartArchive(t, "db", "1.0.0"))
	arrived, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	repo.intercept = func(http.ResponseWriter, *http.Request) bool {
		once.Do(func() { close(arrived) })
		<-goOn
		return false
	}
	files := fstest.MapFS{
		"a/Chart.yaml": {Data: []byte(chartYAML("a", "1.0.0") + "dependencies:\n- {name: db, version: 1.0.0, repository: '" + repo.URL + "'}\n" +
			"- {name: b, version: 1.0.0, repository: 'file://../b'}\n")},
		"b/Chart.yaml": {Data: []byte(chartYAML("b", "1.0.0"))},
	}
	var opens atomic.Int32
	root := &closable{FS: files}
	tree := chart.Tree{Path: "a", Revision: "repo@1", Open: func(context.Context) (fs.FS, func(), error) {
		opens.Add(1)
		return root, func() { root.closed.Store(true) }, nil
	}}
	cache := newCache(t)
	ctx, cancel := context.WithCancel(t.Context())
	left, stayed := make(chan error, 1), make(chan error, 1)
	go func() { _, err := cache.FromFS(ctx, tree, chart.Credentials{}); left <- err }()
	<-arrived
	go func() { _, err := cache.FromFS(t.Context(), tree, chart.Credentials{}); stayed <- err }()
	cancel()
	require.ErrorIs(t, <-left, context.Canceled)
	close(goOn)
	require.NoError(t, <-stayed)
	assert.True(t, root.closed.Load())

	_, err := cache.FromFS(t.Context(), tree, chart.Credentials{})
	require.NoError(t, err)
	assert.EqualValues(t, 1, opens.Load(), "what is known needs no tree")
}

func TestFromFS_treeThatDoesNotOpen(t *testing.T) {
	broken := errors.New("server is down")
	tree := chart.Tree{Revision: "repo@1", Open: func(context.Context) (fs.FS, func(), error) { return nil, nil, broken }}
	_, err := newCache(t).FromFS(t.Context(), tree, chart.Credentials{})
	require.ErrorIs(t, err, broken)
}

// Each pattern is compared with each file.
func TestFromFS_boundsIgnoreFiles(t *testing.T) {
	tree := fstest.MapFS{
		"web/Chart.yaml":  {Data: []byte(chartYAML("web", "1.0.0"))},
		"web/.helmignore": {Data: bytes.Repeat([]byte("x\n"), 40_000)},
	}
	_, err := newCache(t).FromFS(t.Context(), chart.Tree{Open: opened(tree), Path: "web"}, chart.Credentials{})
	require.ErrorIs(t, err, chart.ErrInvalidChart)
	assert.ErrorContains(t, err, "(IgnoreBytes)")
}
