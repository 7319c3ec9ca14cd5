package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// FuzzUnpack shows that whatever is in an archive, what is unpacked is within the limits and below the
// chart's folder. The text is the content of the tar file, since few inputs would be valid gzip.
func FuzzUnpack(f *testing.F) {
	packed := func(members ...tar.Header) []byte {
		var out bytes.Buffer
		w := tar.NewWriter(&out)
		for _, m := range members {
			m.Mode = 0o600
			require.NoError(f, w.WriteHeader(&m))
			_, err := w.Write(bytes.Repeat([]byte("x"), int(m.Size)))
			require.NoError(f, err)
		}
		require.NoError(f, w.Close())
		return out.Bytes()
	}
	f.Add(packed(tar.Header{Name: "web/Chart.yaml", Size: 10}, tar.Header{Name: "web/charts/db.tgz", Size: 20}))
	f.Add(packed(tar.Header{Name: "web/../../x", Size: 1}, tar.Header{Name: `web\..\x`, Size: 1}))
	f.Add(packed(tar.Header{Name: "web/a", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}))
	f.Add([]byte("no archive"))
	limits := Limits{UnpackedBytes: 10_000, FileBytes: 1000, Files: 20, NestedCharts: 2, PathDepth: 4}
	f.Fuzz(func(t *testing.T, content []byte) {
		var zipped bytes.Buffer
		w := gzip.NewWriter(&zipped)
		_, err := w.Write(content)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		files, err := unpack(t.Context(), &zipped, newBudget(limits))
		if err != nil {
			assert.ErrorIs(t, err, ErrInvalidChart)
			return
		}
		total := 0
		for _, file := range files {
			total += len(file.Data)
			assert.Equal(t, path.Clean(file.Name), file.Name)
			assert.False(t, path.IsAbs(file.Name) || strings.HasPrefix(file.Name, ".."), file.Name)
		}
		assert.LessOrEqual(t, int64(total), limits.UnpackedBytes)
		assert.LessOrEqual(t, int64(len(files)), limits.Files)
	})
}
