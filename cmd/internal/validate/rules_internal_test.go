package validate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"waybill.dev/waybill/api/v1alpha1"
)

// C48: of each kind of ours it is known what the webhook would say.
func TestChecks_areThereForEveryKind(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	found := 0
	for kind, typed := range scheme.KnownTypes(v1alpha1.GroupVersion) {
		if strings.HasSuffix(kind, "List") || typed.PkgPath() == "" || !strings.HasSuffix(typed.PkgPath(), "api/v1alpha1") {
			continue // of the API machinery
		}
		found++
		assert.Contains(t, checks, kind)
	}
	assert.GreaterOrEqual(t, found, 9)
}
