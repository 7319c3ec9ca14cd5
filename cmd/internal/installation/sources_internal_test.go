package installation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/api/v1alpha1"
	"waybill.dev/waybill/sync/source/chart"
)

// C59: the program refuses what waybill-sync refuses.
func TestSources_needTheAuthoritiesThatAreNamed(t *testing.T) {
	charts, err := chart.NewCache(t.TempDir())
	require.NoError(t, err)
	source := &v1alpha1.HelmSource{
		URL: "https://127.0.0.1:1", ChartName: "web", ChartVersion: "1.0.0", CASecretRef: &v1alpha1.LocalReference{Name: "authorities"},
	}
	_, err = (&Sources{charts: charts}).chart(t.Context(), &Resolved{
		Version: &v1alpha1.ApplicationVersion{Template: &v1alpha1.ApplicationTemplate{Source: v1alpha1.ApplicationSource{Helm: source}}},
		secrets: secrets{authorities: &contentData{data: map[string][]byte{"tls.crt": []byte("x")}}},
	})
	require.ErrorIs(t, err, chart.ErrInvalidReference)
	assert.Contains(t, err.Error(), "caSecretRef authorities of the source")
	assert.Contains(t, err.Error(), "lacks the key ca.crt")
}
