package chart

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// The values of a chart take many times as much memory as their texts, and those of its subcharts count.
func TestParse_boundsValues(t *testing.T) {
	files := func(count int) []*loader.BufferedFile {
		values := []byte("a: [" + strings.Repeat("{},", count) + "]\n")
		return []*loader.BufferedFile{
			{Name: "Chart.yaml", Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
			{Name: "values.yaml", Data: values},
			{Name: "charts/db/Chart.yaml", Data: []byte("apiVersion: v2\nname: db\nversion: 1.0.0\n")},
			{Name: "charts/db/values.yaml", Data: values},
		}
	}
	const count = 70_000
	_, size, err := parse(t.Context(), files(count), newBudget(DefaultLimits()))
	require.NoError(t, err)
	assert.Greater(t, size, int64(4*count*valueBytes), "what is kept is measured by them, too")
	_, _, err = parse(t.Context(), files(2*count), newBudget(DefaultLimits()))
	require.ErrorIs(t, err, ErrInvalidChart)
	assert.ErrorContains(t, err, "exceeds the limit of 300000 (Values)")
	b := newBudget(DefaultLimits())
	_, _, err = parse(t.Context(), files(count), b)
	require.NoError(t, err)
	_, _, err = parse(t.Context(), files(count), b)
	require.ErrorIs(t, err, ErrInvalidChart, "as do those of what it depends on")
}
