package architecture

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	flagInCode   = regexp.MustCompile(`flags\.\w*Var\(&o\.\w+, "([a-z-]+)"`)
	metricInCode = regexp.MustCompile(`Name:\s+"(waybill_[a-z_]+)"`)
	flagInPage   = regexp.MustCompile("(?m)^\\| `--([a-z-]+)` \\|")
	metricInPage = regexp.MustCompile("(?m)^\\| `(waybill_[a-z_]+)` \\|")
)

// loggingFlags are bound by the library that logs.
var loggingFlags = []string{"log-level", "log-encoding"}

// The page on operations names every flag of the programs that run in a cluster, and none that is
// not there.
func TestOperations_nameEveryFlag(t *testing.T) {
	for _, program := range []string{"waybill-sync", "waybill-webhook", "waybill-dashboard"} {
		_, section, found := strings.Cut(page(t, "operations"), "\n## Flags of "+program+"\n")
		require.True(t, found, program)
		section, _, _ = strings.Cut(section, "\n## ")
		code, err := os.ReadFile(filepath.Join(root, "cmd", program, "main.go"))
		require.NoError(t, err)
		flags := names(flagInCode, string(code))
		require.NotEmpty(t, flags)
		assert.ElementsMatch(t, append(flags, loggingFlags...), names(flagInPage, section), program)
	}
}

// It names every metric as well.
func TestOperations_nameEveryMetric(t *testing.T) {
	var metrics []string
	for _, folder := range []string{"sync", "webhooks", "cmd"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			code, err := os.ReadFile(path)
			metrics = append(metrics, names(metricInCode, string(code))...)
			return err
		}))
	}
	require.NotEmpty(t, metrics)
	assert.ElementsMatch(t, metrics, names(metricInPage, page(t, "operations")))
}

// names are the first groups of all matches.
func names(expression *regexp.Regexp, text string) []string {
	var found []string
	for _, match := range expression.FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}
