package installation

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A program whose home cannot be written, as in a container, fetches charts nevertheless.
func TestOpen_withoutAHome(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, variable := range []string{"HOME", "XDG_CACHE_HOME"} {
		t.Setenv(variable, filepath.Join(file, "home"))
	}
	s, err := OpenSources(nil, false)
	require.NoError(t, err)
	assert.NotNil(t, s.Charts())
	require.NoError(t, s.Close())
	assert.NoDirExists(t, s.dir)
}

// Sources that last keep everything in the folder that they are given, and leave it there.
func TestOpenIsolated_inAFolder(t *testing.T) {
	dir := t.TempDir()
	o := Isolated{Dir: dir, Bytes: 1 << 30, Refuse: true}
	for range 2 {
		s, err := OpenIsolated(o)
		require.NoError(t, err)
		_, err = OpenIsolated(o)
		require.ErrorContains(t, err, dir, "it is taken")
		require.NoError(t, s.Close())
		assert.DirExists(t, filepath.Join(dir, "git"))
		assert.DirExists(t, filepath.Join(dir, "charts"))
	}
}
