package chart_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/sync/source/chart"
)

// member is one entry of a hand-made archive.
type member struct {
	name string
	data string
	kind byte
	link string
}

// archive packs members as they are, right or wrong.
func archive(t *testing.T, members ...member) []byte {
	t.Helper()
	var buf bytes.Buffer
	zipped := gzip.NewWriter(&buf)
	w := tar.NewWriter(zipped)
	for _, m := range members {
		kind := m.kind
		if kind == 0 {
			kind = tar.TypeReg
		}
		require.NoError(t, w.WriteHeader(&tar.Header{Name: m.name, Typeflag: kind, Linkname: m.link, Mode: 0o644, Size: int64(len(m.data))}))
		_, err := w.Write([]byte(m.data))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, zipped.Close())
	return buf.Bytes()
}

// chartArchive packs a minimal chart with further members below its folder.
func chartArchive(t *testing.T, name, version string, more ...member) []byte {
	t.Helper()
	return archive(t, append([]member{{name: name + "/Chart.yaml", data: chartYAML(name, version)}}, more...)...)
}

func chartYAML(name, version string) string {
	return fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", name, version)
}

// packDir packs a chart of testdata as it stands there.
func packDir(t *testing.T, dir string) []byte {
	t.Helper()
	var members []member
	root := os.DirFS(dir)
	require.NoError(t, fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		members = append(members, member{name: path.Join(path.Base(dir), name), data: string(data)})
		return err
	}))
	return archive(t, members...)
}

// repository is a chart repository over HTTP that counts what it is asked for.
type repository struct {
	*httptest.Server

	mu       sync.Mutex
	index    map[string][]map[string]any
	files    map[string][]byte
	requests []string
	// user and password, when set, are wanted for every request.
	user, password string
	// intercept answers before anything else when it returns true.
	intercept func(http.ResponseWriter, *http.Request) bool
}

func newRepository(t *testing.T, start func(http.Handler) *httptest.Server) *repository {
	t.Helper()
	r := &repository{index: map[string][]map[string]any{}, files: map[string][]byte{}}
	r.Server = start(r)
	t.Cleanup(r.Close)
	return r
}

// authority returns the certificate that vouches for a server with TLS.
func authority(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func (r *repository) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, req.URL.Path)
	if r.intercept != nil && r.intercept(w, req) {
		return
	}
	if user, password, _ := req.BasicAuth(); user != r.user || password != r.password {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	data, ok := r.files[req.URL.Path]
	if req.URL.Path == "/index.yaml" {
		data, ok = r.indexYAML(), true
	}
	if !ok {
		http.NotFound(w, req)
		return
	}
	sum := sha256.Sum256(data)
	etag := `"` + hex.EncodeToString(sum[:]) + `"`
	w.Header().Set("ETag", etag)
	if req.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(data)
}

func (r *repository) indexYAML() []byte {
	if data, ok := r.files["/index.yaml"]; ok {
		return data
	}
	data, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "entries": r.index})
	if err != nil {
		return []byte(err.Error())
	}
	return data
}

// add offers an archive as a version of a chart.
func (r *repository) add(name, version string, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := sha256.Sum256(data)
	file := name + "-" + version + ".tgz"
	r.files["/"+file] = data
	r.index[name] = append(r.index[name], map[string]any{
		"name": name, "version": version, "urls": []string{file}, "digest": hex.EncodeToString(sum[:]),
	})
}

// asked returns and forgets the paths that were requested.
func (r *repository) asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.requests = nil }()
	return slices.Clone(r.requests)
}

func newCache(t *testing.T, opts ...chart.Option) *chart.Cache {
	t.Helper()
	cache, err := chart.NewCache(t.TempDir(), opts...)
	require.NoError(t, err)
	return cache
}

// templateNames lists the templates of a chart, to see which files it was made of.
func templateNames(c *chart.Chart) []string {
	var names []string
	for _, f := range c.Templates {
		names = append(names, f.Name)
	}
	for _, f := range c.Files {
		names = append(names, strings.TrimPrefix(f.Name, "./"))
	}
	return names
}

// opened opens a tree that needs no closing.
func opened(root fs.FS) func(context.Context) (fs.FS, func(), error) {
	return func(context.Context) (fs.FS, func(), error) { return root, func() {}, nil }
}

// fstestChart is a directory with nothing but a Chart.yaml.
func fstestChart(chartYAML string) fstest.MapFS {
	return fstest.MapFS{"Chart.yaml": {Data: []byte(chartYAML)}}
}
