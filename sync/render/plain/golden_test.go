package plain_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"waybill.dev/waybill/sync/manifest"
	"waybill.dev/waybill/sync/render/plain"
)

// P12, C59
func TestRender_golden(t *testing.T) {
	cases, err := os.ReadDir("testdata")
	require.NoError(t, err)
	for _, c := range cases {
		if !c.IsDir() || c.Name() == "fuzz" {
			continue
		}
		t.Run(c.Name(), func(t *testing.T) {
			dir := filepath.Join("testdata", c.Name())
			objects, problems, err := plain.Render(t.Context(), os.DirFS(dir), plain.Options{Dir: "clusters/prod"})
			require.NoError(t, err)
			assertGolden(t, dir+".golden", text(t, objects, problems))
		})
	}
}

// text shows everything that a Render returned.
func text(t *testing.T, objects []manifest.Object, problems []manifest.Problem) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, o := range objects {
		content, err := yaml.Marshal(o.Unstructured.Object)
		require.NoError(t, err)
		fmt.Fprintf(&out, "--- %s\n%s", o.Place(), content)
	}
	for _, p := range problems {
		fmt.Fprintf(&out, "=== %s: %s\n", p.Reason, p.Error())
	}
	return out.Bytes()
}

// assertGolden compares with a file, or writes it when UPDATE_GOLDEN is set.
func assertGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with UPDATE_GOLDEN=1 to write the file")
	assert.Equal(t, string(want), string(got))
}
