package architecture

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// unmapped are folders that are no part of what a reader looks for.
var unmapped = []string{"bin", "dist"}

// readmeMap returns the folders that the README's map names, in its order.
func readmeMap(t *testing.T) []string {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(readme), "\n## What is where\n")
	require.True(t, found, "the README has no map")
	parts := strings.SplitN(section, "```", 3)
	require.Len(t, parts, 3, "the map is a block of code")
	var folders []string
	for line := range strings.Lines(strings.TrimPrefix(parts[1], "\n")) {
		folder, says, _ := strings.Cut(strings.TrimSpace(line), " ")
		assert.NotEmpty(t, strings.TrimSpace(says), "the map says nothing about %s", folder)
		folders = append(folders, folder)
	}
	return folders
}

// subfolders lists the folders in a folder of the repository that git may know.
func subfolders(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, folder))
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, filepath.Join(folder, e.Name()))
		}
	}
	return names
}

func TestReadme_mapNamesWhatExists(t *testing.T) {
	for _, folder := range readmeMap(t) {
		assert.DirExists(t, filepath.Join(root, folder))
	}
}

// A folder is on the map, or all that is in it is.
func TestReadme_mapLeavesNothingOut(t *testing.T) {
	mapped := readmeMap(t)
	for _, folder := range subfolders(t, "") {
		if slices.Contains(mapped, folder) || slices.Contains(unmapped, folder) {
			continue
		}
		inside := subfolders(t, folder)
		assert.NotEmpty(t, inside, "%s is not on the README's map", folder)
		for _, sub := range inside {
			assert.Contains(t, mapped, sub, "%s is not on the README's map", sub)
		}
	}
}
