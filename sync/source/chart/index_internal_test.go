package chart

import (
	"archive/tar"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMatchVersion(t *testing.T) {
	have := []string{"v1.0.0", "1.1.0+a", "2024.1", "1.2.0-rc.1", "nightly"}
	cases := map[string]struct{ reason, version, want string }{
		"Same":      {"a string that is listed", "nightly", "nightly"},
		"Prefix":    {"1.0.0 is v1.0.0", "1.0.0", "v1.0.0"},
		"Short":     {"2024.1.0 is 2024.1", "2024.1.0", "2024.1"},
		"Metadata":  {"builds are told apart", "1.1.0+b", ""},
		"Unlisted":  {"not there", "3.0.0", ""},
		"NoVersion": {"neither listed nor a version", "latest", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := matchVersion("web", tc.version, have)
			assert.Equal(t, tc.want, got, tc.reason)
			if tc.want == "" {
				require.ErrorIs(t, err, ErrNotFound, tc.reason)
			}
		})
	}
}

func TestNearestVersions(t *testing.T) {
	have := []string{"1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0", "1.5.0", "1.6.0", "junk"}
	cases := map[string]struct {
		reason, version string
		want            []string
	}{
		"Middle": {"neighbours on both sides", "1.3.5", []string{"1.5.0", "1.4.0", "1.3.0", "1.2.0", "1.1.0"}},
		"Above":  {"the newest", "9.0.0", []string{"1.6.0", "1.5.0", "1.4.0", "1.3.0", "1.2.0"}},
		"Below":  {"the oldest", "0.1.0", []string{"1.4.0", "1.3.0", "1.2.0", "1.1.0", "1.0.0"}},
		"None":   {"the newest when there is nothing to compare with", "x", []string{"1.6.0", "1.5.0", "1.4.0", "1.3.0", "1.2.0"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, nearestVersions(tc.version, have), tc.reason)
		})
	}
	assert.Empty(t, nearestVersions("1.0.0", nil))
}

func TestParseIndex_readsJSONAndYAML(t *testing.T) {
	for _, text := range []string{
		`{"apiVersion":"v1","entries":{"web":[{"version":"1.0.0","urls":["web.tgz"],"digest":"sha256:ab"}]}}`,
		"apiVersion: v1\nentries:\n  web:\n  - {version: 1.0.0, urls: [web.tgz], digest: ab, keywords: [x]}\n",
	} {
		idx, err := parseIndex([]byte(text), DefaultLimits())
		require.NoError(t, err)
		assert.Equal(t, []release{{version: "1.0.0", url: "web.tgz", digest: "ab"}}, idx.charts["web"])
	}
}

func FuzzParseIndex(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"v1","entries":{"web":[{"version":"1.0.0","urls":["x"]}]}}`))
	f.Add([]byte("apiVersion: v1\nentries: {web: [null, {version: 1.0}]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		idx, err := parseIndex(data, DefaultLimits())
		if err != nil {
			assert.ErrorIs(t, err, ErrInvalidChart)
			return
		}
		for name, releases := range idx.charts {
			for _, r := range releases {
				assert.NotEmpty(t, r.version)
				assert.NotEmpty(t, r.url)
				found, err := idx.find(name, r.version)
				assert.NoError(t, err)
				assert.Equal(t, r.version, found.version)
			}
		}
	})
}

func FuzzMemberName(f *testing.F) {
	for _, seed := range []string{"web/Chart.yaml", "web/../x", "/x/y", `web\..\x`, "./web/x", "web//x", "c:/x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got, err := memberName(&tar.Header{Name: name, Typeflag: tar.TypeReg})
		if err != nil {
			assert.ErrorIs(t, err, ErrInvalidChart)
			return
		}
		assert.True(t, filepath.IsLocal(got), "%q became %q", name, got)
	})
}
