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
