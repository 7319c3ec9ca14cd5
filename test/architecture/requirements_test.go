package architecture

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// code has the folders whose Go files are searched for keys.
var code = []string{"api", "cmd", "sync", "webhooks", "test"}

var (
	requirementKey  = regexp.MustCompile(`\b[ACKPSW][0-9]{1,3}\b`)
	requirementLine = regexp.MustCompile(`(?m)^- \*\*([ACKPSW][0-9]{1,3})\*\* \S.*\.$`)
	listItem        = regexp.MustCompile(`(?m)^- `)
)

// citation is a key in a comment.
type citation struct{ key, file string }

// citations returns the keys that the comments of Go files cite: of tests, or of all other files.
func citations(t *testing.T, tests bool) []citation {
	t.Helper()
	var found []citation
	for _, folder := range code {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") != tests {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			for _, group := range file.Comments {
				for _, comment := range group.List {
					for _, key := range requirementKey.FindAllString(comment.Text, -1) {
						found = append(found, citation{key, strings.TrimPrefix(path, root+"/")})
					}
				}
			}
			return nil
		}))
	}
	return found
}

// listedRequirements returns the keys that test/requirements.md explains, in its order.
func listedRequirements(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "test", "requirements.md"))
	require.NoError(t, err)
	keys := names(requirementLine, string(page))
	require.NotEmpty(t, keys)
	assert.Len(t, listItem.FindAllString(string(page), -1), len(keys), "every item is a key and a sentence")
	return keys
}

// A comment that cites a key says nothing to those who do not have the list at hand. It says the reason
// itself; what a test covers is for the test to cite.
func TestRequirements_areCitedByTestsOnly(t *testing.T) {
	for _, c := range citations(t, false) {
		assert.Fail(t, "a comment outside tests cites "+c.key, "%s: say the reason instead", c.file)
	}
}

func TestRequirements_haveWhatTestsCite(t *testing.T) {
	listed := map[string]bool{}
	for _, key := range listedRequirements(t) {
		listed[key] = true
	}
	cited := citations(t, true)
	require.NotEmpty(t, cited)
	for _, c := range cited {
		assert.True(t, listed[c.key], "%s cites %s, which test/requirements.md does not explain", c.file, c.key)
	}
}

func TestRequirements_areListedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, key := range listedRequirements(t) {
		assert.False(t, seen[key], "%s is listed twice", key)
		seen[key] = true
	}
}
