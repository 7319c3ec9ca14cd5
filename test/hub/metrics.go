package hub

import (
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// AwaitMetric waits until a gauge of this process has a value.
func (w *World) AwaitMetric(name string, labels map[string]string, value float64) {
	w.T.Helper()
	require.True(w.T, w.Eventually(func() bool {
		found := w.series(name, labels)
		return len(found) == 1 && found[0] == value
	}), "%s of %v is not %g, but %v", name, labels, value, w.series(name, labels))
}

// AwaitNoMetric waits until this process has no series of a metric with these labels.
func (w *World) AwaitNoMetric(name string, labels map[string]string) {
	w.T.Helper()
	require.True(w.T, w.Eventually(func() bool { return len(w.series(name, labels)) == 0 }), "%s of %v is still there", name, labels)
}

// series returns the values of all series of a metric that have at least these labels; counters
// appear as zero.
func (w *World) series(name string, labels map[string]string) []float64 {
	w.T.Helper()
	families, err := metrics.Registry.Gather()
	require.NoError(w.T, err)
	var found []float64
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			has := map[string]string{}
			for _, pair := range m.GetLabel() {
				has[pair.GetName()] = pair.GetValue()
			}
			if !slices.ContainsFunc(slices.Collect(maps.Keys(labels)), func(label string) bool { return has[label] != labels[label] }) {
				found = append(found, m.GetGauge().GetValue())
			}
		}
	}
	return found
}
