package applicationsnapshot

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"waybill.dev/waybill/api/v1alpha1"
)

// C35: who restores what installations may take values from must be allowed to install.
func TestKindsOf_countsSourcesOfValues(t *testing.T) {
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}
	mapper := meta.NewDefaultRESTMapper(nil)
	assert.Equal(t, []string{"secrets"}, kindsOf([]*unstructured.Unstructured{secret}, mapper))
	secret.SetLabels(map[string]string{v1alpha1.ValuesLabel: v1alpha1.ValuesProtected})
	assert.Equal(t, []string{"applicationinstallations.apps.waybill.dev", "secrets"}, kindsOf([]*unstructured.Unstructured{secret}, mapper))
}
