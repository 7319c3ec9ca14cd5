package chart_test

import (
	"archive/tar"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/sync/source/chart"
	"waybill.dev/waybill/test/env"
)

// unusedAddress returns an address at which no process listens, and no other will during the test.
func unusedAddress(t *testing.T) string {
	t.Helper()
	gate, err := env.NewGate("")
	require.NoError(t, err)
	t.Cleanup(gate.Close)
	gate.Shut()
	return gate.Address()
}

// K47: what a repository can send instead of a chart, and what is said about it.
func TestGet_namesWhatIsWrongWithAnArchive(t *testing.T) {
	limits := chart.DefaultLimits()
	limits.ArchiveBytes, limits.UnpackedBytes, limits.FileBytes = 20_000, 100_000, 60_000
	limits.Files, limits.NestedCharts, limits.PathDepth = 20, 2, 5
	file := func(name string, size int) member { return member{name: name, data: strings.Repeat("x", size)} }
	nested := func(depth int) []byte {
		inner := chartArchive(t, "web", "1.0.0", file("web/big", 50_000))
		for range depth {
			inner = chartArchive(t, "web", "1.0.0", member{name: "web/charts/inner.tgz", data: string(inner)})
		}
		return inner
	}
	many := make([]member, 30)
	for i := range many {
		many[i] = file(fmt.Sprintf("web/files/%d", i), 1)
	}
	folders := make([]member, 30)
	for i := range folders {
		folders[i] = member{name: fmt.Sprintf("web/files/%d/", i), kind: tar.TypeDir}
	}
	twice := chartArchive(t, "web", "1.0.0",
		member{name: "web/charts/a.tgz", data: string(chartArchive(t, "a", "1.0.0", file("a/big", 55_000)))},
		member{name: "web/charts/b.tgz", data: string(chartArchive(t, "b", "1.0.0", file("b/big", 55_000)))})
	cases := map[string]struct {
		archive []byte
		want    string
	}{
		"NoArchive":     {[]byte("hello"), "read archive"},
		"Truncated":     {chartArchive(t, "web", "1.0.0")[:60], "read archive"},
		"NoChart":       {archive(t, member{name: "web/readme", data: "x"}), "Chart.yaml file is missing"},
		"BigFile":       {chartArchive(t, "web", "1.0.0", file("web/big", 70_000)), "(FileBytes)"},
		"Bomb":          {chartArchive(t, "web", "1.0.0", file("web/a", 55_000), file("web/b", 55_000)), "(UnpackedBytes)"},
		"BombInCharts":  {twice, "(UnpackedBytes)"},
		"ManyFiles":     {chartArchive(t, "web", "1.0.0", many...), "(Files)"},
		"ManyFolders":   {chartArchive(t, "web", "1.0.0", folders...), "(Files)"},
		"DeepPath":      {chartArchive(t, "web", "1.0.0", file("web/1/2/3/4/5/6/7", 1)), "(PathDepth)"},
		"DeepNesting":   {nested(4), "(NestedCharts)"},
		"Large":         {chartArchive(t, "web", "1.0.0", randomFile(30_000)), "(ArchiveBytes)"},
		"Parent":        {chartArchive(t, "web", "1.0.0", file("web/../../etc/passwd", 1)), "leaves the archive"},
		"Absolute":      {chartArchive(t, "web", "1.0.0", file("/etc/passwd", 1)), "absolute path"},
		"Drive":         {chartArchive(t, "web", "1.0.0", file(`c:\windows`, 1)), "absolute path"},
		"Backslashes":   {chartArchive(t, "web", "1.0.0", file(`web\..\..\x`, 1)), "leaves the archive"},
		"OutsideFolder": {chartArchive(t, "web", "1.0.0", file("x", 1)), "is not in the folder of a chart"},
		"Symlink":       {chartArchive(t, "web", "1.0.0", member{name: "web/x", kind: tar.TypeSymlink, link: "/etc/passwd"}), "is a link"},
		"Library":       {archive(t, member{name: "web/Chart.yaml", data: chartYAML("web", "1.0.0") + "type: library\n"}), "library chart"},
		"NoDependency": {
			archive(t, member{name: "web/Chart.yaml", data: chartYAML("web", "1.0.0") + "dependencies: [{name: db, version: 1.x, repository: 'https://host'}]\n"}),
			"declares the dependency db 1.x",
		},
		"OtherChart":   {chartArchive(t, "other", "1.0.0"), "archive holds the chart other"},
		"OtherVersion": {chartArchive(t, "web", "1.0.1"), "archive holds version 1.0.1"},
		"AliasBomb": {
			chartArchive(t, "web", "1.0.0", member{name: "web/charts/db/values.yaml", data: "a: &x " + strings.Repeat("y", 20_000) + "\nb: [" + strings.Repeat("*x,", 10_000) + "]"}),
			"charts/db/values.yaml: aliases stand for too many bytes (limit AliasBytes is 5242880)",
		},
		"BadValues": {chartArchive(t, "web", "1.0.0", member{name: "web/values.yaml", data: "[1, 2]"}), "cannot load values.yaml"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			repo := newRepository(t, httptest.NewServer)
			repo.add("web", "1.0.0", tc.archive)
			got, err := newCache(t, chart.WithLimits(limits)).Get(t.Context(), chart.Reference{URL: repo.URL, Name: "web", Version: "1.0.0"}, chart.Credentials{})
			require.ErrorIs(t, err, chart.ErrInvalidChart)
			assert.Contains(t, err.Error(), tc.want)
			assert.Nil(t, got)
		})
	}
}

// Files that Helm never decodes may hold anything.
func TestGet_filesThatAreNoYAML(t *testing.T) {
	repo := newRepository(t, httptest.NewServer)
	template := "a: {{ .x }} # & *\nb: [\n"
	repo.add("web", "1.0.0", chartArchive(t, "web", "1.0.0",
		member{name: "web/files/values.yaml", data: template}, member{name: "web/templates/values.yaml", data: template},
		member{name: "web/starters/shop/Chart.yaml", data: template}))
	_, err := newCache(t).Get(t.Context(), chart.Reference{URL: repo.URL, Name: "web", Version: "1.0.0"}, chart.Credentials{})
	assert.NoError(t, err)
}

// randomFile does not shrink when it is packed.
func randomFile(size int) member {
	data := make([]byte, size)
	for i, x := 0, uint32(1); i < size; i++ {
		x = x*1664525 + 1013904223
		data[i] = byte(x >> 24)
	}
	return member{name: "web/noise", data: string(data)}
}

func TestGet_namesWhatIsWrongWithARepository(t *testing.T) {
	limits := chart.DefaultLimits()
	limits.IndexBytes, limits.IndexVersions = 1000, 3
	index := func(text string) func(*repository) {
		return func(r *repository) { r.files["/index.yaml"] = []byte(text) }
	}
	status := func(code int) func(*repository) {
		return func(r *repository) {
			r.intercept = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(code); return true }
		}
	}
	cases := map[string]struct {
		arrange func(*repository)
		is      error
		want    string
	}{
		"NoIndex":      {status(404), chart.ErrNotFound, "index.yaml"},
		"Forbidden":    {status(403), chart.ErrAuth, "server answered 403"},
		"Broken":       {status(500), chart.ErrUnreachable, "server answered 500"},
		"Unexpected":   {status(204), chart.ErrUnreachable, "server answered 204"},
		"Down":         {func(r *repository) { r.URL = "http://" + unusedAddress(t) }, chart.ErrUnreachable, "connection refused"},
		"LoginPage":    {index("<html>hello</html>"), chart.ErrAuth, "/index.yaml: access denied: the server answered with a web page instead of a chart or an index: if a login is needed"},
		"UnnamedPage":  {index(" \n<?xml version='1.0'?><html>hello</html>"), chart.ErrAuth, "the server answered with a web page"},
		"ArchivePage":  {func(r *repository) { r.files["/web-1.0.0.tgz"] = []byte("<!DOCTYPE html>") }, chart.ErrAuth, "/web-1.0.0.tgz: access denied: the server answered with a web page"},
		"OtherYAML":    {index("foo: bar"), chart.ErrInvalidChart, "not a repository index"},
		"HugeIndex":    {index("apiVersion: v1\n#" + strings.Repeat("x", 1000)), chart.ErrInvalidChart, "(IndexBytes)"},
		"ManyVersions": {index("apiVersion: v1\nentries: {web: [{},{},{},{}]}"), chart.ErrInvalidChart, "(IndexVersions)"},
		"Aliases":      {index("apiVersion: v1\nentries: {a: &a [{}, {}], b: *a}"), chart.ErrInvalidChart, "(IndexVersions)"},
		"NoSuchChart":  {index("apiVersion: v1\nentries: {website: [{version: 1.0.0, urls: [x]}]}"), chart.ErrNotFound, "has no chart web; it has the charts website"},
		"NoAddress":    {index("apiVersion: v1\nentries: {web: [{version: 1.0.0}, null]}"), chart.ErrNotFound, "has no chart web"},
		"LocalFile":    {index("apiVersion: v1\nentries: {web: [{version: 1.0.0, urls: ['file:///etc/passwd']}]}"), chart.ErrInvalidChart, `scheme "file"`},
		"WrongDigest":  {func(r *repository) { r.index["web"][0]["digest"] = strings.Repeat("0", 64) }, chart.ErrInvalidChart, "was announced"},
		"NoArchive":    {func(r *repository) { delete(r.files, "/web-1.0.0.tgz") }, chart.ErrNotFound, "web-1.0.0.tgz"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			repo := newRepository(t, httptest.NewServer)
			repo.add("web", "1.0.0", chartArchive(t, "web", "1.0.0"))
			tc.arrange(repo)
			_, err := newCache(t, chart.WithLimits(limits)).Get(t.Context(), chart.Reference{URL: repo.URL, Name: "web", Version: "1.0.0"}, chart.Credentials{})
			require.ErrorIs(t, err, tc.is)
			assert.Contains(t, err.Error(), tc.want)
		})
	}
}

func TestGet_brokenDownloadLeavesNothingBehind(t *testing.T) {
	repo := newRepository(t, httptest.NewServer)
	data := chartArchive(t, "web", "1.0.0", randomFile(30_000))
	repo.add("web", "1.0.0", data)
	repo.intercept = func(w http.ResponseWriter, req *http.Request) bool {
		if req.URL.Path == "/index.yaml" {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data[:len(data)/2])
		return true
	}
	cache := newCache(t)
	ref := chart.Reference{URL: repo.URL, Name: "web", Version: "1.0.0"}
	_, err := cache.Get(t.Context(), ref, chart.Credentials{})
	require.ErrorIs(t, err, chart.ErrUnreachable)

	repo.mu.Lock()
	repo.intercept = nil
	repo.mu.Unlock()
	_, err = cache.Get(t.Context(), ref, chart.Credentials{})
	require.NoError(t, err)
}
