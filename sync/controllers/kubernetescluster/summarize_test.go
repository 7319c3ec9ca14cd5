package kubernetescluster

import (
	"fmt"
	"slices"
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
