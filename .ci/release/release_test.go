package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A checkout in short: one dependency, which is in every module cache that can build Waybill.
var files = map[string]string{
	"go.mod":                     "module example.com/waybill\n\ngo 1.26.0\n",
	"cmd/waybill/main.go":        "package main\n\nvar version = \"unknown\"\n\nfunc main() { println(version) }\n",
	"cmd/waybill-sync/main.go":   "package main\n\nvar version = \"unknown\"\n\nfunc main() { println(version) }\n",
	"charts/waybill/Chart.yaml":  "name: waybill\nversion: 0.0.1\nappVersion: 0.0.1\n",
	"charts/waybill/values.yaml": "image: {}\n",
	"LICENSE":                    "licence\n", "README.md": "readme\n", "CHANGELOG.md": "changes\n",
}

// small writes the checkout and returns its root.
func small(t *testing.T) string {
	t.Helper()
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	t.Setenv("GOFLAGS", "-mod=mod")
	root := t.TempDir()
	for file, content := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(content), 0o600))
	}
	return root
}

// platforms is that of the machine, whose standard library is compiled already.
const platforms = "linux/" + runtime.GOARCH

func TestImage_isTheSameEachTime(t *testing.T) {
	root := small(t)
	var digests []string
	for range 2 {
		dir := filepath.Join(t.TempDir(), "image")
		require.NoError(t, run(t.Context(), []string{"image", "--source", root, "--version", "v1.2.3", "--platforms", platforms, "--output", dir}))
		path, err := layout.FromPath(dir)
		require.NoError(t, err)
		index, err := path.ImageIndex()
		require.NoError(t, err)
		digest, err := index.Digest()
		require.NoError(t, err)
		digests = append(digests, digest.String())
	}
	assert.Equal(t, digests[0], digests[1])
}

func TestImage_runsAsNobodyInParticular(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "image")
	require.NoError(t, run(t.Context(), []string{"image", "--source", small(t), "--version", "v1.2.3", "--platforms", platforms, "--output", dir}))
	image := only(t, dir)
	config, err := image.ConfigFile()
	require.NoError(t, err)
	assert.Equal(t, []string{"/waybill"}, config.Config.Entrypoint)
	assert.Equal(t, "65532:65532", config.Config.User)
	assert.Equal(t, runtime.GOARCH, config.Architecture)
	assert.Equal(t, "1.2.3", config.Config.Labels["org.opencontainers.image.version"])
	assert.EqualValues(t, 1700000000, config.Created.Unix())

	content := mutate.Extract(image)
	defer content.Close()
	modes := entries(t, content)
	assert.Equal(t, []string{
		"etc", "etc/passwd", "etc/ssl", "etc/ssl/certs", "etc/ssl/certs/ca-certificates.crt", "tmp", "waybill", "waybill-sync",
	}, slices.Sorted(maps.Keys(modes)))
	assert.EqualValues(t, 0o755, modes["waybill"])
	assert.EqualValues(t, 0o1777, modes["tmp"], "programs write below /tmp")
}

func TestImage_isPushedWithItsBillOfMaterials(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	pushed, err := random.Image(10, 1)
	require.NoError(t, err)
	base, err := name.NewTag(host + "/base:1")
	require.NoError(t, err)
	require.NoError(t, remote.Write(base, pushed))
	digest, err := pushed.Digest()
	require.NoError(t, err)

	require.NoError(t, run(t.Context(), []string{
		"image", "--source", small(t), "--version", "1.2.3", "--platforms", platforms,
		"--base", host + "/base@" + digest.String(), "--push", host + "/waybill:1.2.3",
	}))

	tag, err := name.NewTag(host + "/waybill:1.2.3")
	require.NoError(t, err)
	image, err := remote.Image(tag, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	require.NoError(t, err)
	layers, err := image.Layers()
	require.NoError(t, err)
	assert.Len(t, layers, 2, "the base and the programs")
	built, err := image.Digest()
	require.NoError(t, err)
	referrers, err := remote.Referrers(tag.Context().Digest(built.String()))
	require.NoError(t, err)
	manifest, err := referrers.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 1)
	assert.Equal(t, inventoryType, manifest.Manifests[0].ArtifactType)
}

func TestArchives_areCheckedByTheirSums(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "release")
	require.NoError(t, run(t.Context(), []string{"archives", "--source", small(t), "--version", "v1.2.3", "--platforms", platforms, "--output", dir}))
	sums, err := os.ReadFile(filepath.Join(dir, checksums))
	require.NoError(t, err)
	archive := "waybill_1.2.3_linux_" + runtime.GOARCH
	var listed []string
	for line := range strings.Lines(string(sums)) {
		listed = append(listed, strings.Fields(line)[1])
	}
	assert.Equal(t, []string{"waybill-1.2.3.tgz", archive + ".cdx.json", archive + ".tar.gz"}, listed)

	chart := unpack(t, filepath.Join(dir, "waybill-1.2.3.tgz"))
	assert.Contains(t, chart["waybill/Chart.yaml"], "\nversion: 1.2.3\nappVersion: 1.2.3\n")
	assert.Contains(t, unpack(t, filepath.Join(dir, archive+".tar.gz")), archive+"/waybill-sync")

	content, err := os.ReadFile(filepath.Join(dir, archive+".cdx.json"))
	require.NoError(t, err)
	var materials cyclonedx.BOM
	require.NoError(t, json.Unmarshal(content, &materials))
	assert.Equal(t, "std", (*materials.Components)[0].Name)
}

func TestRelease_refuses(t *testing.T) {
	root, foreign := small(t), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "thesis.odt"), nil, 0o600))
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a base by tag, which may be another image tomorrow": {
			[]string{"image", "--base", "registry.example.com/base:1"}, `--base: "registry.example.com/base:1" names no digest`},
		"a platform without an architecture":    {[]string{"image", "--platforms", "linux"}, `--platforms: "linux" is not OS/ARCHITECTURE`},
		"to empty a folder that is not its own": {[]string{"image", "--output", foreign}, "is not empty and is no OCI layout"},
		"the same, of archives":                 {[]string{"archives", "--version", "1.0.0", "--output", foreign}, "holds thesis.odt"},
		"a version that a chart cannot have":    {[]string{"archives", "--version", "abc1234"}, `--version: "abc1234" is not a semantic version`},
		"a tag without a name":                  {[]string{"image", "--push", "registry.example.com/waybill"}, "--push: "},
		"what it does not know":                 {[]string{"publish"}, "usage: release image|archives"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{test.args[0], "--source", root}, test.args[1:]...)
			if test.args[0] == "publish" {
				args = test.args
			}
			assert.ErrorContains(t, run(t.Context(), args), test.want)
		})
	}
	assert.FileExists(t, filepath.Join(foreign, "thesis.odt"))
}

// only returns the one program image of a layout.
func only(t *testing.T, dir string) v1.Image {
	t.Helper()
	path, err := layout.FromPath(dir)
	require.NoError(t, err)
	root, err := path.ImageIndex()
	require.NoError(t, err)
	manifest, err := root.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 2, "the index of images, and a bill of materials")
	index, err := root.ImageIndex(manifest.Manifests[0].Digest)
	require.NoError(t, err)
	images, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, images.Manifests, 1)
	image, err := index.Image(images.Manifests[0].Digest)
	require.NoError(t, err)
	return image
}

// entries returns the modes of what an archive holds, by name.
func entries(t *testing.T, archive io.Reader) map[string]int64 {
	t.Helper()
	modes := map[string]int64{}
	for r := tar.NewReader(archive); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return modes
		}
		require.NoError(t, err)
		modes[header.Name] = header.Mode
	}
}

// unpack returns the files of a compressed archive, by name.
func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	compressed, err := gzip.NewReader(f)
	require.NoError(t, err)
	content := map[string]string{}
	for r := tar.NewReader(compressed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return content
		}
		require.NoError(t, err)
		b, err := io.ReadAll(r)
		require.NoError(t, err)
		content[header.Name] = string(b)
	}
}
