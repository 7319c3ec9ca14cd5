package architecture

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// apart lists the libraries that may have another version in another module, because next to nothing is compiled with them.
var apart = map[string]string{
	"go.opentelemetry.io/otel/sdk": "newer in the control plane, and imported by few packages",
}

// versionsOf returns the version of each library of a module, by the path of the library.
func versionsOf(t *testing.T, module string) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	cmd.Dir = filepath.Join(root, module)
	out, err := cmd.Output()
	require.NoError(t, err)
	type version struct{ Path, Version string }
	var file struct {
		Require []version
		Replace []struct{ Old, New version }
	}
	require.NoError(t, json.Unmarshal(out, &file))
	versions := map[string]string{}
	for _, r := range file.Require {
		versions[r.Path] = r.Version
	}
	for _, r := range file.Replace {
		if versions[r.Old.Path] != "" && r.New.Path == r.Old.Path {
			versions[r.Old.Path] = r.New.Version
		}
	}
	return versions
}

// What the controllers of volumes have in common with Waybill is of one version: where a library
// differs, it and all that imports it is compiled once more, which has taken minutes of each run from nothing.
func TestModules_shareTheVersionsOfLibraries(t *testing.T) {
	known := versionsOf(t, ".")
	for _, module := range []string{"test/controlplane/volumes"} {
		for library, version := range versionsOf(t, module) {
			switch wanted, found := known[library]; {
			case !found:
				known[library] = version
			case apart[library] == "":
				assert.Equal(t, wanted, version, "%s of %s: require or replace it in its go.mod by the version that Waybill has", library, module)
			}
		}
	}
}
