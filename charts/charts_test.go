package charts_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/charts"
)

// C1: every kind is of our group and listed by `kubectl get waybill`.
func TestCRDs_areOurs(t *testing.T) {
	crds, err := charts.CRDs()
	require.NoError(t, err)
	require.NotEmpty(t, crds)
	for _, crd := range crds {
		assert.Equal(t, v1alpha1.Group, crd.Spec.Group, crd.Name)
		assert.Contains(t, crd.Spec.Names.Categories, v1alpha1.Category, crd.Name)
	}
}
