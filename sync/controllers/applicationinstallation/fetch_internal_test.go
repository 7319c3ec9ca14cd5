package applicationinstallation

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"waybill.dev/waybill/sync/reconcile"
)

// A fetch that ends after its cluster was removed does not keep its chart for ever.
func TestWake_forgetsWhatNobodyWants(t *testing.T) {
	r, woken := &Reconciler{}, make(chan struct{})
	r.fetches = reconcile.NewJobs[jobKey, prepared](t.Context(), 1, func(k jobKey) { r.wake(k); woken <- struct{}{} },
		func(err error) prepared { return prepared{err: err} })
	key := jobKey{cluster: types.NamespacedName{Name: "removed"}}
	fetch := func() bool {
		_, known := r.fetches.Do("lane", key, "chart", func(context.Context) prepared { return prepared{digest: "chart"} })
		return known
	}
	require.False(t, fetch())
	<-woken
	require.False(t, fetch(), "the result was dropped, so it is fetched again")
	<-woken
}
