package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// named returns the values of the constants of the API whose names have an ending.
func named(t *testing.T, ending string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "api", "v1alpha1", "*.go"))
	require.NoError(t, err)
	var values []string
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		values = append(values, constants(t, file, ending)...)
	}
	require.NotEmpty(t, values)
	return values
}

// constants returns the values of the constants of a file whose names have an ending.
func constants(t *testing.T, file *ast.File, ending string) []string {
	t.Helper()
	var values []string
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || !strings.HasSuffix(spec.Names[0].Name, ending) {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		require.NoError(t, err)
		values = append(values, value)
		return true
	})
	return values
}

var firstCell = regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` (\\|.*)$")

// Each condition and each reason says on the page what it means and what to do, and the page has no
// others.
func TestTroubleshooting_namesEveryConditionAndReason(t *testing.T) {
	text := page(t, "troubleshooting")
	conditions, reasons, found := strings.Cut(text, "\n## Reasons\n")
	require.True(t, found)
	for ending, section := range map[string]string{"Condition": conditions, "Reason": reasons} {
		var listed []string
		for _, row := range firstCell.FindAllStringSubmatch(section, -1) {
			listed = append(listed, row[1])
			for cell := range strings.SplitSeq(strings.Trim(row[2], "| "), " | ") {
				assert.NotEmpty(t, strings.TrimSpace(cell), row[0])
			}
			assert.GreaterOrEqual(t, strings.Count(row[2], "|"), 3, "a meaning, and what to do: %s", row[0])
		}
		assert.ElementsMatch(t, named(t, ending), listed, ending)
	}
}
