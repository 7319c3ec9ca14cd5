package chart

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
)

// A fetch that was given up must not go on in the background, nor be reported as a fault of the chart.
func TestParseArchive_endsWithItsFetch(t *testing.T) {
	file, err := chartutil.Save(&chart.Chart{Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: "web", Version: "1.0.0"}}, t.TempDir())
	require.NoError(t, err)
	packed, err := os.ReadFile(file)
	require.NoError(t, err)
	cache, err := NewCache(t.TempDir())
	require.NoError(t, err)
	digest, err := cache.store.put(bytes.NewReader(packed), "")
	require.NoError(t, err)
	parseArchive := func(ctx context.Context) error {
		_, _, err := cache.parseArchive(ctx, digest, newBudget(cache.limits))
		return err
	}
	steps := []struct {
		reason string
		do     func(context.Context) error
	}{
		{"an archive may hold many files", func(ctx context.Context) error {
			_, err := unpack(ctx, bytes.NewReader(packed), newBudget(cache.limits))
			return err
		}},
		{"and many charts", func(ctx context.Context) error {
			_, _, err := parse(ctx, []*loader.BufferedFile{{Name: "Chart.yaml", Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")}}, newBudget(cache.limits))
			return err
		}},
		{"both together", parseArchive},
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, step := range steps {
		require.NoError(t, step.do(t.Context()), step.reason)
		err := step.do(ended)
		require.ErrorIs(t, err, context.Canceled, step.reason)
		assert.False(t, isOurs(err), step.reason)
	}

	for range cap(cache.loading) {
		cache.loading <- struct{}{}
	}
	require.ErrorIs(t, parseArchive(ended), context.Canceled, "others take all the room there is")
}
