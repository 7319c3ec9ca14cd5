package validate

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A finding names as much of its object as is known.
func TestFinding_namesItsObject(t *testing.T) {
	for want, f := range map[string]finding{
		"a.yaml:2: Job: metadata.name: is missing":                 {File: "a.yaml", Line: 2, Kind: "Job", Field: "metadata.name", Message: "is missing"},
		"a.yaml: warning: Job shop/db: hooks are not run":          {File: "a.yaml", Severity: severityWarning, Kind: "Job", Namespace: "shop", Name: "db", Message: "hooks are not run"},
		"ApplicationDefinition podinfo: spec.versions: is missing": {Kind: "ApplicationDefinition", Name: "podinfo", Field: "spec.versions", Message: "is missing"},
	} {
		assert.Equal(t, want, f.String())
	}
}
