package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inCode is a file, and perhaps a function in it, as the page on the architecture names them.
var inCode = regexp.MustCompile("`((?:api|cmd|sync|webhooks)/[a-z0-9_/]+\\.go)`(?: `(\\w+)`)?")

// Who follows a commit through the code by the page finds each step where the page says it is.
func TestArchitecturePage_namesWhatIsThere(t *testing.T) {
	steps := inCode.FindAllStringSubmatch(page(t, "architecture"), -1)
	require.NotEmpty(t, steps)
	for _, step := range steps {
		text, err := os.ReadFile(filepath.Join(root, step[1]))
		if assert.NoError(t, err) && step[2] != "" {
			assert.Regexp(t, `(?m)^func (\([^)]+\) )?`+step[2]+`\b`, string(text), "%s has no function %s", step[1], step[2])
		}
	}
}
