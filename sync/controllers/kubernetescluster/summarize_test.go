package kubernetescluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"waybill.dev/waybill/api/v1alpha1"
)

// C47: removal guards rely on the list, so no version in use may fall out of it.
func TestShorten_keepsEveryVersionInUse(t *testing.T) {
	var all []v1alpha1.InstallationSummary
	for i := range maxInstallations + 500 {
		all = append(all, v1alpha1.InstallationSummary{Namespace: "a", Name: fmt.Sprintf("%05d", i), Definition: "web", Version: "1"})
	}
	last := v1alpha1.InstallationSummary{Namespace: "z", Name: "z", Definition: "web", Version: "2"}
	got := shorten(append(all, last))
	assert.Len(t, got, maxInstallations)
	assert.Contains(t, got, last)
	assert.True(t, slices.IsSortedFunc(got, byName))
	assert.Equal(t, all[:10], shorten(all[:10]), "few are left as they are")
}

// A cluster says what it likes: what no API server stores is left out, and the rest has to fit into a status.
func TestShorten_fitsIntoAStatus(t *testing.T) {
	long := strings.Repeat("x", 250)
	var all []v1alpha1.InstallationSummary
	for i := range maxInstallations {
		all = append(all, v1alpha1.InstallationSummary{Namespace: long, Name: fmt.Sprintf("%s%03d", long[3:], i), Definition: "web", Version: "1"})
	}
	last := v1alpha1.InstallationSummary{Namespace: "z", Name: "z", Definition: "web", Version: "2"}
	got := shorten(append(all, last))
	size := 0
	for _, i := range got {
		size += len(i.Namespace) + len(i.Name) + len(i.Definition) + len(i.Version)
	}
	assert.LessOrEqual(t, size, maxInstallationsSize)
	assert.Greater(t, size, maxInstallationsSize-1000, "as many as fit")
	assert.Contains(t, got, last)

	for reason, odd := range map[string]v1alpha1.InstallationSummary{
		"a namespace with white space":   {Namespace: "a b", Name: "a", Definition: "web", Version: "1"},
		"no name":                        {Namespace: "a", Definition: "web", Version: "1"},
		"a definition that is too long":  {Namespace: "a", Name: "a", Definition: strings.Repeat("x", 300), Version: "1"},
		"a version that is too long":     {Namespace: "a", Name: "a", Definition: "web", Version: strings.Repeat("1", maxVersion+1)},
		"a version for terminals to run": {Namespace: "a", Name: "a", Definition: "web", Version: "1\x1b[2J"},
	} {
		assert.True(t, isOdd(odd), reason)
	}
	assert.False(t, isOdd(last))
}
